// One item of a .distcp file: a torch.save archive of a chunk or of another object, the bytes that
// a planner of its own wrote, or either behind a stream transform.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/checkpoint.h"

namespace ckptverify {

enum class DcpItemKind { kTensor, kObject };

struct DcpItemPlace {
  Bytes bytes;  // the item alone
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::string name;  // "model.weight in __0_0.distcp"
  DcpItemKind kind = DcpItemKind::kTensor;
  const std::vector<std::string>* transforms = nullptr;  // none: as stored
  std::uint64_t size_max = 0;                            // of what transforms may decode to
};

struct DcpItem {
  /// Entries with paths relative to the item, its claims, checksums and findings. Without files.
  Checkpoint part;
  /// Why there are no entries. The bytes are claimed as unverifiable then.
  std::optional<Error> refusal = {};
  bool is_raw = false;  // no archive: its bytes as a value
};

DcpItem read_dcp_item(const DcpItemPlace& place);

/// An end-of-directory record is the last thing in the bytes, and a local header the first.
bool begins_and_ends_as_zip(Bytes bytes);

}  // namespace ckptverify
