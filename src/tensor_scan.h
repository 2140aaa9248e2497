// Hands out the logical bytes of many tensors, leaf by leaf, to many threads. A tensor that is
// stored as it is read comes straight from the mapping; any other one is gathered whole by the
// thread that takes it, so that memory is bounded by one tensor a thread.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// One contiguous row-major piece without decoding or view flags: its logical bytes are its stored
/// bytes.
bool stored_as_read(const Tensor& tensor);

/// Where a leaf belongs: `tensor` is an index into the list given, `offset` is in logical bytes.
struct Leaf {
  std::size_t tensor = 0;
  std::uint64_t offset = 0;
  Bytes bytes;
};

/// Calls `visit` once for every leaf of kLeafSize bytes of every tensor, from many threads at once.
/// The result is parallel to `tensors`: why a tensor could not be read, if it could not. Leaves of
/// a tensor with an error are not visited. Absent and empty tensors have none.
std::vector<std::optional<Error>> scan_leaves(const Checkpoint& checkpoint,
                                              std::span<const Tensor* const> tensors,
                                              Threads threads,
                                              const std::function<void(const Leaf&)>& visit);

/// A tensor and the path that people know it by. Parts of composites have their name behind a '.'.
struct NamedTensor {
  const Tensor* tensor = nullptr;
  const Entry* entry = nullptr;
  std::string path;
};

/// Every tensor with data, parts of composites included, in the order of the entries.
std::vector<NamedTensor> tensors_with_data(const Checkpoint& checkpoint);

}  // namespace ckptverify
