// What the metadata of a PyTorch distributed checkpoint says: which chunks each tensor is cut into,
// and in which file, from which byte on, each chunk and each other object lies. All versions since
// torch 1.12, of whatever class the root is: its attributes tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/finding.h"
#include "ckptverify/result.h"
#include "ckptverify/tensor.h"

namespace ckptverify {

/// The bytes [offset, offset + size) of a file.
struct DcpSlice {
  std::uint32_t file = 0;  // into DcpMetadata::files
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t transforms = 0;  // into DcpMetadata::transforms
};

/// A box of a tensor: elements [offsets, offsets + sizes).
struct DcpChunk {
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint64_t> sizes;
  std::optional<DcpSlice> slice;  // none: no file is said to store it
};

struct DcpEntry {
  std::string name;               // fully qualified
  std::vector<std::string> keys;  // the path that the planner flattened; empty where it tells none
  bool is_tensor = false;
  std::string dtype_name;  // "float32"; empty where it is no dtype
  std::optional<DType> dtype;
  std::vector<std::uint64_t> shape;  // of the whole tensor
  std::vector<DcpChunk> chunks;      // of another object one, without dimensions
};

/// A slice that no chunk or object claims.
struct DcpOrphan {
  std::string name;
  DcpSlice slice;
};

struct DcpMetadata {
  std::vector<DcpEntry> entries;
  std::vector<std::string> files;                    // relative to the directory
  std::vector<std::vector<std::string>> transforms;  // to undo, in order; the first is none
  std::vector<DcpOrphan> orphans;
  std::string version;  // "1.0.0" or empty
  std::string save_id;
  std::vector<Finding> findings;  // what loading the pickle would run
};

/// Errors: the pickle's, and kBitrot for a root that is no metadata or says impossible things.
Result<DcpMetadata> read_dcp_metadata(Bytes bytes);

}  // namespace ckptverify
