// The tensors of a checkpoint that have bytes. One that is stored as it is read comes straight from
// the mapping; any other one is gathered whole by the thread that takes it, so that memory is
// bounded by one tensor a thread.
#pragma once

#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// One contiguous row-major piece without decoding or view flags: its logical bytes are its stored
/// bytes.
bool stored_as_read(const Tensor& tensor);

/// A tensor and the path that people know it by. Parts of composites have their name behind a '.'.
struct NamedTensor {
  const Tensor* tensor = nullptr;
  const Entry* entry = nullptr;
  std::string path;
};

/// Every tensor with data, parts of composites included, in the order of the entries.
std::vector<NamedTensor> tensors_with_data(const Checkpoint& checkpoint);

}  // namespace ckptverify
