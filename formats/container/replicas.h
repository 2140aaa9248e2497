// What every rank saved for itself and what all saved alike. Files of ranks are read apart; a
// component that is the same in all of them is one component, as in a file of one process.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/format.h"

namespace ckptverify {

struct RankEntries {
  std::uint32_t rank = 0;
  std::vector<Entry> entries;  // as the file's reader left them, their runs in `checkpoint`'s files
};

/// The entries of all ranks as one list. A component that is equal in all ranks to the last byte
/// keeps its paths and belongs to no rank; of any other, and of the random states and the cursor in
/// the data always, each rank's has the rank after the component's root: "optimizer.3.state.0".
/// Reads the bytes of what looks alike; of a large tensor, a listing reads only the beginning.
std::vector<Entry> merge_ranks(const Checkpoint& checkpoint, std::vector<RankEntries> ranks,
                               Depth depth);

}  // namespace ckptverify
