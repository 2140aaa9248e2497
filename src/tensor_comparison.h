// By how much the elements of two tensors of one type and shape differ. Ranges of one tensor are
// compared by different threads and merged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ckptverify/comparison.h"

namespace ckptverify {

/// Over the elements that differ by more than the tolerance.
struct TensorDifference {
  std::uint64_t count = 0;
  std::uint64_t first_index = 0;  // flat, row-major; of the first such element
  std::string first_text;         // that element on both sides
  std::string second_text;
  double max_absolute = 0;
  double max_relative = 0;
  std::uint64_t max_ulp = 0;
  bool same_numbers = true;  // all of them are equal as numbers
};

/// Two ranges of logical bytes whose first element is `first_index` of its tensor.
TensorDifference compare_elements(DType dtype, Bytes first, Bytes second, std::uint64_t first_index,
                                  const Tolerance& tolerance);

/// Takes in the difference of a later range of the same tensor.
void merge(TensorDifference& earlier, const TensorDifference& later);

/// |a - b| / |b|: infinite where only b is zero.
double relative_difference(double absolute, double magnitude);

/// Zero and zero tolerate nothing but equal bits.
bool tolerated(const Tolerance& tolerance, double absolute, double magnitude);

}  // namespace ckptverify
