// Looks through every tensor for elements that are not finite and for tensors that are all zero.
#pragma once

#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// The findings of "static.finite": NaN and Infinity in floating tensors, zeros all over in tensors
/// of the model, tensors that could not be read; or that all is well.
std::vector<Finding> check_finite(const Checkpoint& checkpoint, Threads threads);

}  // namespace ckptverify
