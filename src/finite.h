// Says which tensors hold elements that are not finite and which are all zero.
#pragma once

#include <vector>

#include "ckptverify/check.h"
#include "src/checkpoint_fingerprint.h"

namespace ckptverify {

/// The findings of "static.finite": NaN and Infinity in floating tensors, zeros all over in tensors
/// of the model, tensors that could not be read; or that all is well. `pass` looked at the content,
/// and at the checksums: what one of them says of a tensor's bytes is not said again.
std::vector<Finding> finite_findings(const Checkpoint& checkpoint, const TensorsToRead& read,
                                     const Pass& pass, NotFinite not_finite);

}  // namespace ckptverify
