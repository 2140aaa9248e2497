// Between a pass over the bytes and the fingerprint of a checkpoint: which tensors must be read for
// it, and what it is once they have been.
#pragma once

#include <vector>

#include "ckptverify/fingerprint.h"
#include "src/byte_pass.h"
#include "src/tensor_scan.h"

namespace ckptverify {

struct TensorsToRead {
  std::vector<NamedTensor> named;           // every tensor with data
  std::vector<const Tensor*> tensors = {};  // those to read: aliases of the same elements are not
  std::vector<std::size_t> names = {};      // parallel to `tensors`: which of `named` each is
};

TensorsToRead tensors_to_read(const Checkpoint& checkpoint);

/// `pass` is over the tensors of `read`.
Result<Fingerprint> fingerprint_of(const Checkpoint& checkpoint, const TensorsToRead& read,
                                   const Pass& pass);

}  // namespace ckptverify
