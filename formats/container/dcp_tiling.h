// Whether boxes tile a whole: each inside, no two overlapping, and together all of it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ckptverify/cause.h"

namespace ckptverify {

struct Box {
  std::span<const std::uint64_t> offsets;
  std::span<const std::uint64_t> sizes;
};

struct TilingFault {
  CauseKind cause = CauseKind::kLayout;  // kShardMissing for a hole
  std::string message;
  bool undecided = false;  // too many boxes in too odd an arrangement: nothing is known
};

/// The first fault; none where the boxes tile the shape. All have the shape's dimensions. Empty
/// boxes hold nothing and disturb nobody.
std::optional<TilingFault> tiling_fault(std::span<const std::uint64_t> shape,
                                        const std::vector<Box>& boxes);

/// "[2, 3]".
std::string dimensions_text(std::span<const std::uint64_t> dimensions);

}  // namespace ckptverify
