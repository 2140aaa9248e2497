// Equal blocks are passed over by memcmp; only elements whose bits differ are looked at as numbers.
#include "src/tensor_comparison.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/element.h"

namespace ckptverify {
namespace {

// A multiple of every element size, small enough to stay in the first-level cache.
constexpr std::size_t kBlockSize = 4096;

void add_element(DType dtype, Bytes first, Bytes second, std::uint64_t index,
                 const Tolerance& tolerance, TensorDifference& sum) {
  const ElementDifference difference = element_difference(dtype, first, second);
  if (tolerated(tolerance, difference.absolute, difference.magnitude)) return;
  if (sum.count++ == 0) {
    sum.first_index = index;
    sum.first_text = element_text(dtype, first);
    sum.second_text = element_text(dtype, second);
  }
  sum.max_absolute = std::max(sum.max_absolute, difference.absolute);
  sum.max_relative =
      std::max(sum.max_relative, relative_difference(difference.absolute, difference.magnitude));
  sum.max_ulp = std::max(sum.max_ulp, difference.ulp);
  sum.same_numbers = sum.same_numbers && difference.same_number;
}

bool equal_bytes(Bytes first, Bytes second) {
  return std::memcmp(first.data(), second.data(), first.size()) == 0;
}

}  // namespace

double relative_difference(double absolute, double magnitude) {
  if (absolute == 0) return 0;
  return magnitude == 0 ? std::numeric_limits<double>::infinity() : absolute / magnitude;
}

bool tolerated(const Tolerance& tolerance, double absolute, double magnitude) {
  if (tolerance.relative == 0 && tolerance.absolute == 0) return false;
  return absolute <= tolerance.absolute + tolerance.relative * magnitude;
}

TensorDifference compare_elements(DType dtype, Bytes first, Bytes second, std::uint64_t first_index,
                                  const Tolerance& tolerance) {
  CKPTVERIFY_ASSERT(first.size() == second.size());
  TensorDifference sum;
  // A counter or a generator's state is right or wrong.
  const Tolerance allowed = float_layout(dtype) ? tolerance : Tolerance{};
  const std::uint64_t size = dtype_size(dtype);
  for (std::uint64_t begin = 0; begin < first.size(); begin += kBlockSize) {
    const std::uint64_t end = std::min<std::uint64_t>(first.size(), begin + kBlockSize);
    if (equal_bytes(first.subspan(begin, end - begin), second.subspan(begin, end - begin)))
      continue;
    for (std::uint64_t at = begin; at < end; at += size) {
      const Bytes a = first.subspan(at, size);
      const Bytes b = second.subspan(at, size);
      if (!equal_bytes(a, b)) add_element(dtype, a, b, first_index + at / size, allowed, sum);
    }
  }
  return sum;
}

void merge(TensorDifference& earlier, const TensorDifference& later) {
  if (earlier.count == 0) {
    earlier = later;
    return;
  }
  earlier.count += later.count;
  earlier.max_absolute = std::max(earlier.max_absolute, later.max_absolute);
  earlier.max_relative = std::max(earlier.max_relative, later.max_relative);
  earlier.max_ulp = std::max(earlier.max_ulp, later.max_ulp);
  earlier.same_numbers = earlier.same_numbers && later.same_numbers;
}

}  // namespace ckptverify
