// One pass over the bytes of a checkpoint. Each file is cut into segments that threads take; a
// thread feeds a block that fits its cache to every digest that wants it: the leaves of tensors,
// the piecewise checksums, the leaves of the file. What cannot be had so (tensors that must be
// gathered, checksums of decoded bytes) is read by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"
#include "src/content.h"

namespace ckptverify {

struct PassRequest {
  std::span<const Tensor* const> tensors = {};  // each has data; their leaves are hashed
  bool content = false;                         // and their numbers looked at
  bool checksums = false;                       // Checkpoint::checksums are computed
  bool files = false;                           // leaves of every file are hashed
  Threads threads = {};
};

/// What a stored checksum is found to be.
struct FoundChecksum {
  std::string text;
  std::uint64_t size = 0;  // bytes covered
};

struct Pass {
  // Parallel to the request's tensors.
  std::vector<std::vector<Digest>> leaves;
  std::vector<TensorContent> contents;
  std::vector<std::optional<Error>> errors;  // why one could not be read, if it could not
  // Parallel to Checkpoint::checksums.
  std::vector<Result<FoundChecksum>> checksums;
  // Parallel to Checkpoint::files.
  std::vector<std::vector<Digest>> file_leaves;
};

Pass pass_over_bytes(const Checkpoint& checkpoint, const PassRequest& request);

}  // namespace ckptverify
