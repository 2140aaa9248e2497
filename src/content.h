// What the numbers of a tensor are like: not finite, or zero all over. Found block by block.
#pragma once

#include <cstdint>

#include "ckptverify/bytes.h"
#include "ckptverify/tensor.h"

namespace ckptverify {

struct TensorContent {
  std::uint64_t not_finite_count = 0;  // numbers, not elements: a complex one has two
  std::uint64_t first_not_finite = 0;  // element; meaningful where the count is not zero
  bool all_zero = true;
};

/// Whole elements, the first of which is `first_element` of its tensor.
TensorContent content_of(DType dtype, Bytes bytes, std::uint64_t first_element);

/// The blocks of a tensor may be added in any order.
void add(TensorContent& sum, const TensorContent& block);

}  // namespace ckptverify
