// What the bytes of one element mean as numbers: floating layouts as data, so that comparison and
// the search for NaN need no case a type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ckptverify/bytes.h"
#include "ckptverify/statistics.h"
#include "ckptverify/tensor.h"

namespace ckptverify {

enum class ElementKind { kFloat, kComplex, kSigned, kUnsigned, kBool };

ElementKind element_kind(DType dtype);

/// How a floating number lies in its bits: sign, exponent and mantissa from the top down. Equal to
/// `not_finite` under `not_finite_mask` is what is not finite: Infinity and NaN where the type has
/// both, else NaN alone; a mask of zero means that the type has neither.
struct FloatLayout {
  unsigned bits = 0;
  unsigned mantissa_bits = 0;
  int bias = 0;
  bool is_signed = true;
  bool has_infinity = false;
  bool has_subnormals = true;
  std::uint64_t not_finite_mask = 0;
  std::uint64_t not_finite = 0;
  unsigned per_byte = 1;  // 2 for the packed float4
};

/// Of a floating type, and of one half of a complex one; nothing for the others.
std::optional<FloatLayout> float_layout(DType dtype);

double float_value(const FloatLayout& layout, std::uint64_t bits);
bool is_nan(const FloatLayout& layout, std::uint64_t bits);
std::uint64_t ulp_distance(const FloatLayout& layout, std::uint64_t first, std::uint64_t second);

/// Up to eight little-endian bytes.
std::uint64_t load_bits(Bytes bytes);

/// What two elements of one type are to each other. `bytes` are one element each.
struct ElementDifference {
  double absolute = 0;   // infinite where one is not finite and they are not the same
  double magnitude = 0;  // of the second
  std::uint64_t ulp = 0;
  bool same_number = false;  // equal as numbers; NaN is NaN
};

ElementDifference float_difference(const FloatLayout& layout, std::uint64_t first,
                                   std::uint64_t second);
ElementDifference element_difference(DType dtype, Bytes first, Bytes second);

}  // namespace ckptverify
