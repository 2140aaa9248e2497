// Floating layouts, from PyTorch's c10/util headers and the OCP 8-bit and microscaling
// specifications: IEEE types keep the top exponent for Infinity and NaN; the "fn" types have no
// Infinity; the "uz" types have no negative zero, whose bits are their NaN.
#include "src/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ckptverify/comparison.h"
#include "ckptverify/value.h"

namespace ckptverify {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

constexpr FloatLayout ieee(unsigned bits, unsigned mantissa_bits) {
  const unsigned exponent_bits = bits - 1 - mantissa_bits;
  const std::uint64_t top = low_bits(exponent_bits) << mantissa_bits;
  return {.bits = bits,
          .mantissa_bits = mantissa_bits,
          .bias = static_cast<int>(low_bits(exponent_bits - 1)),
          .has_infinity = true,
          .not_finite_mask = top,
          .not_finite = top};
}

std::uint64_t magnitude_bits(const FloatLayout& layout, std::uint64_t bits) {
  return layout.is_signed ? bits & low_bits(layout.bits - 1) : bits;
}

bool is_negative(const FloatLayout& layout, std::uint64_t bits) {
  return layout.is_signed && (bits >> (layout.bits - 1) & 1) != 0;
}

/// |first - second| of two numbers that are not both NaN.
double absolute_difference(double first, double second) {
  if (first == second) return 0;  // equal infinities, whose difference is NaN
  const double difference = std::abs(first - second);
  return std::isnan(difference) ? kInfinity : difference;
}

/// The halves of a complex number: distances in the plane.
ElementDifference complex_difference(const ElementDifference& real,
                                     const ElementDifference& imaginary) {
  return {.absolute = std::hypot(real.absolute, imaginary.absolute),
          .magnitude = std::hypot(real.magnitude, imaginary.magnitude),
          .ulp = std::max(real.ulp, imaginary.ulp),
          .same_number = real.same_number && imaginary.same_number};
}

/// The two numbers of a packed byte: the worse one, against the smaller magnitude of those that
/// differ.
ElementDifference packed_difference(const ElementDifference& low, const ElementDifference& high) {
  if (low.same_number) return high;
  if (high.same_number) return low;
  return {.absolute = std::max(low.absolute, high.absolute),
          .magnitude = std::min(low.magnitude, high.magnitude),
          .ulp = std::max(low.ulp, high.ulp)};
}

std::int64_t sign_extended(std::uint64_t bits, std::uint64_t size) {
  const unsigned unused = static_cast<unsigned>(64 - 8 * size);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

ElementDifference integer_difference(ElementKind kind, Bytes first, Bytes second) {
  std::uint64_t a = load_bits(first);
  std::uint64_t b = load_bits(second);
  if (kind == ElementKind::kBool) {
    a = a != 0 ? 1 : 0;
    b = b != 0 ? 1 : 0;
  }
  if (kind != ElementKind::kSigned) {
    return {.absolute = static_cast<double>(std::max(a, b) - std::min(a, b)),
            .magnitude = static_cast<double>(b),
            .same_number = a == b};
  }
  const std::int64_t x = sign_extended(a, first.size());
  const std::int64_t y = sign_extended(b, second.size());
  // Subtracted without sign: the distance of two int64 needs all 64 bits.
  const std::uint64_t low = static_cast<std::uint64_t>(std::min(x, y));
  const std::uint64_t high = static_cast<std::uint64_t>(std::max(x, y));
  return {.absolute = static_cast<double>(high - low),
          .magnitude = std::abs(static_cast<double>(y)),
          .same_number = x == y};
}

}  // namespace

ElementKind element_kind(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return ElementKind::kBool;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kQint8:
    case DType::kQint32:
      return ElementKind::kSigned;
    case DType::kComplex32:
    case DType::kComplex64:
    case DType::kComplex128:
      return ElementKind::kComplex;
    default:
      return float_layout(dtype) ? ElementKind::kFloat : ElementKind::kUnsigned;
  }
}

std::optional<FloatLayout> float_layout(DType dtype) {
  switch (dtype) {
    case DType::kComplex32:
    case DType::kFloat16:
      return ieee(16, 10);
    case DType::kBfloat16:
      return ieee(16, 7);
    case DType::kComplex64:
    case DType::kFloat32:
      return ieee(32, 23);
    case DType::kComplex128:
    case DType::kFloat64:
      return ieee(64, 52);
    case DType::kFloat8E5m2:
      return ieee(8, 2);
    case DType::kFloat8E4m3fn:
      return FloatLayout{
          .bits = 8, .mantissa_bits = 3, .bias = 7, .not_finite_mask = 0x7f, .not_finite = 0x7f};
    case DType::kFloat8E4m3fnuz:
      return FloatLayout{
          .bits = 8, .mantissa_bits = 3, .bias = 8, .not_finite_mask = 0xff, .not_finite = 0x80};
    case DType::kFloat8E5m2fnuz:
      return FloatLayout{
          .bits = 8, .mantissa_bits = 2, .bias = 16, .not_finite_mask = 0xff, .not_finite = 0x80};
    case DType::kFloat8E8m0fnu:
      return FloatLayout{.bits = 8,
                         .mantissa_bits = 0,
                         .bias = 127,
                         .is_signed = false,
                         .has_subnormals = false,
                         .not_finite_mask = 0xff,
                         .not_finite = 0xff};
    case DType::kFloat4E2m1fnX2:
      return FloatLayout{.bits = 4, .mantissa_bits = 1, .bias = 1, .per_byte = 2};
    default:
      return std::nullopt;
  }
}

bool is_nan(const FloatLayout& layout, std::uint64_t bits) {
  if (layout.not_finite_mask == 0 || (bits & layout.not_finite_mask) != layout.not_finite) {
    return false;
  }
  return !layout.has_infinity || (bits & low_bits(layout.mantissa_bits)) != 0;
}

double float_value(const FloatLayout& layout, std::uint64_t bits) {
  if (layout.bits == 64) return std::bit_cast<double>(bits);
  if (layout.bits == 32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (is_nan(layout, bits)) return std::numeric_limits<double>::quiet_NaN();
  const double sign = is_negative(layout, bits) ? -1.0 : 1.0;
  const std::uint64_t magnitude = magnitude_bits(layout, bits);
  if (layout.has_infinity && magnitude == layout.not_finite) return sign * kInfinity;
  const auto exponent = static_cast<int>(magnitude >> layout.mantissa_bits);
  const std::uint64_t mantissa = magnitude & low_bits(layout.mantissa_bits);
  const bool subnormal = exponent == 0 && layout.has_subnormals;
  const std::uint64_t leading = subnormal ? 0 : std::uint64_t{1} << layout.mantissa_bits;
  const int scale =
      (subnormal ? 1 : exponent) - layout.bias - static_cast<int>(layout.mantissa_bits);
  return sign * std::ldexp(static_cast<double>(leading | mantissa), scale);
}

std::uint64_t ulp_distance(const FloatLayout& layout, std::uint64_t first, std::uint64_t second) {
  if (is_nan(layout, first) || is_nan(layout, second)) {
    const bool both = is_nan(layout, first) && is_nan(layout, second);
    return both ? 0 : std::numeric_limits<std::uint64_t>::max();
  }
  const std::uint64_t a = magnitude_bits(layout, first);
  const std::uint64_t b = magnitude_bits(layout, second);
  // On the number line both zeros are one point, so magnitudes of unlike signs add.
  if (is_negative(layout, first) != is_negative(layout, second)) return a + b;
  return std::max(a, b) - std::min(a, b);
}

std::uint64_t ulp_distance(DType dtype, std::uint64_t first_bits, std::uint64_t second_bits) {
  const auto layout = float_layout(dtype);
  CKPTVERIFY_ASSERT(layout.has_value());
  if (layout->per_byte == 1) return ulp_distance(*layout, first_bits, second_bits);
  return std::max(ulp_distance(*layout, first_bits & 15, second_bits & 15),
                  ulp_distance(*layout, first_bits >> 4 & 15, second_bits >> 4 & 15));
}

std::uint64_t load_bits(Bytes bytes) {
  CKPTVERIFY_ASSERT(bytes.size() <= 8);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bits |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return bits;
}

ElementDifference float_difference(const FloatLayout& layout, std::uint64_t first,
                                   std::uint64_t second) {
  const double a = float_value(layout, first);
  const double b = float_value(layout, second);
  if (std::isnan(a) && std::isnan(b)) return {.same_number = true};
  return {.absolute = absolute_difference(a, b),
          .magnitude = std::isfinite(b) ? std::abs(b) : 0,
          .ulp = ulp_distance(layout, first, second),
          .same_number = a == b};
}

ElementDifference element_difference(DType dtype, Bytes first, Bytes second) {
  CKPTVERIFY_ASSERT(first.size() == dtype_size(dtype) && second.size() == first.size());
  const ElementKind kind = element_kind(dtype);
  const auto layout = float_layout(dtype);
  if (!layout) return integer_difference(kind, first, second);
  if (kind == ElementKind::kComplex) {
    const std::size_t half = first.size() / 2;
    const auto real =
        float_difference(*layout, load_bits(first.first(half)), load_bits(second.first(half)));
    const auto imaginary =
        float_difference(*layout, load_bits(first.last(half)), load_bits(second.last(half)));
    return complex_difference(real, imaginary);
  }
  const std::uint64_t a = load_bits(first);
  const std::uint64_t b = load_bits(second);
  if (layout->per_byte == 1) return float_difference(*layout, a, b);
  return packed_difference(float_difference(*layout, a & 15, b & 15),
                           float_difference(*layout, a >> 4, b >> 4));
}

std::string element_text(DType dtype, Bytes element) {
  const std::uint64_t bits = load_bits(element.first(std::min<std::size_t>(8, element.size())));
  const auto layout = float_layout(dtype);
  switch (element_kind(dtype)) {
    case ElementKind::kBool:
      return bits == 0 ? "false" : bits == 1 ? "true" : std::to_string(bits);
    case ElementKind::kUnsigned:
      return std::to_string(bits);
    case ElementKind::kSigned:
      return std::to_string(sign_extended(bits, element.size()));
    case ElementKind::kComplex: {
      const std::size_t half = element.size() / 2;
      return "(" + value_text(float_value(*layout, load_bits(element.first(half)))) + ", " +
             value_text(float_value(*layout, load_bits(element.last(half)))) + ")";
    }
    case ElementKind::kFloat:
      break;
  }
  if (layout->per_byte == 1) return value_text(float_value(*layout, bits));
  return "(" + value_text(float_value(*layout, bits & 15)) + ", " +
         value_text(float_value(*layout, bits >> 4)) + ")";
}

}  // namespace ckptverify
