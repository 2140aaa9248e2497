// One loop of fixed length asks of many numbers at once whether any is not finite or not zero,
// which compilers turn into vector code; only where one is not finite are they counted one by one.
#include "src/content.h"

#include <algorithm>
#include <cstring>

#include "src/element.h"

namespace ckptverify {
namespace {

// Bytes of the fixed loop.
constexpr std::size_t kRowSize = 1024;

template <class Unsigned>
Unsigned load(const std::byte* at) {
  Unsigned bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

/// Bits that say what a row has; both are nothing but zero or not.
template <class Unsigned>
struct Row {
  Unsigned not_finite = 0;
  Unsigned any = 0;
};

template <class Unsigned>
Row<Unsigned> look_at_row(const std::byte* start, Unsigned mask, Unsigned pattern) {
  Row<Unsigned> row;
  for (std::size_t i = 0; i < kRowSize / sizeof(Unsigned); ++i) {
    const auto bits = load<Unsigned>(start + i * sizeof(Unsigned));
    row.any = static_cast<Unsigned>(row.any | bits);
    const bool hit = static_cast<Unsigned>(bits & mask) == pattern;
    row.not_finite = static_cast<Unsigned>(row.not_finite | static_cast<Unsigned>(hit ? -1 : 0));
  }
  return row;
}

template <class Unsigned>
class NumberScan {
 public:
  NumberScan(const FloatLayout& layout, Bytes bytes)
      : mask_(static_cast<Unsigned>(layout.not_finite_mask)),
        pattern_(static_cast<Unsigned>(layout.not_finite)),
        bytes_(bytes) {}

  /// `first_not_finite` counts numbers from the start of the bytes.
  TensorContent scan() {
    std::size_t at = 0;
    for (; at + kRowSize <= bytes_.size(); at += kRowSize) {
      const auto row = look_at_row<Unsigned>(bytes_.data() + at, mask_, pattern_);
      if (row.any != 0) content_.all_zero = false;
      if (row.not_finite != 0) count(at, at + kRowSize);
    }
    for (std::size_t rest = at; rest < bytes_.size(); ++rest) {
      if (bytes_[rest] != std::byte{0}) content_.all_zero = false;
    }
    count(at, bytes_.size());
    return content_;
  }

 private:
  void count(std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at + sizeof(Unsigned) <= end; at += sizeof(Unsigned)) {
      const auto bits = load<Unsigned>(bytes_.data() + at);
      if (static_cast<Unsigned>(bits & mask_) != pattern_) continue;
      if (content_.not_finite_count++ == 0) content_.first_not_finite = at / sizeof(Unsigned);
    }
  }

  Unsigned mask_;
  Unsigned pattern_;
  Bytes bytes_;
  TensorContent content_;
};

bool is_zero(Bytes bytes) {
  return bytes.empty() || (bytes.front() == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

TensorContent numbers(const FloatLayout& layout, Bytes bytes) {
  switch (layout.bits) {
    case 8:
      return NumberScan<std::uint8_t>(layout, bytes).scan();
    case 16:
      return NumberScan<std::uint16_t>(layout, bytes).scan();
    case 32:
      return NumberScan<std::uint32_t>(layout, bytes).scan();
    default:
      CKPTVERIFY_ASSERT(layout.bits == 64);
      return NumberScan<std::uint64_t>(layout, bytes).scan();
  }
}

}  // namespace

TensorContent content_of(DType dtype, Bytes bytes, std::uint64_t first_element) {
  const auto layout = float_layout(dtype);
  if (!layout || layout->not_finite_mask == 0) return {.all_zero = is_zero(bytes)};
  TensorContent content = numbers(*layout, bytes);
  if (element_kind(dtype) == ElementKind::kComplex) content.first_not_finite /= 2;
  content.first_not_finite += first_element;
  return content;
}

void add(TensorContent& sum, const TensorContent& block) {
  sum.all_zero = sum.all_zero && block.all_zero;
  if (block.not_finite_count == 0) return;
  sum.first_not_finite = sum.not_finite_count == 0
                             ? block.first_not_finite
                             : std::min(sum.first_not_finite, block.first_not_finite);
  sum.not_finite_count += block.not_finite_count;
}

}  // namespace ckptverify
