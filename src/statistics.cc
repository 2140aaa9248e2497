// Each thread sums a range of the tensor; the ranges' sums are joined. Numbers of up to 16 bits are
// looked up in a table of all their values.
#include "ckptverify/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/element.h"
#include "src/parallel.h"

namespace ckptverify {
namespace {

// Bytes that a thread takes at a time; a multiple of every element size.
constexpr std::uint64_t kRangeSize = std::uint64_t{4} << 20;

struct Sums {
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  std::uint64_t finite = 0;
  double sum = 0;
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();

  void add(double value) {
    ++count;
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++infinite;
    } else {
      ++finite;
      zero += value == 0 ? 1U : 0U;
      sum += value;
      minimum = std::min(minimum, value);
      maximum = std::max(maximum, value);
    }
  }

  void add(const Sums& other) {
    count += other.count;
    nan += other.nan;
    infinite += other.infinite;
    zero += other.zero;
    finite += other.finite;
    sum += other.sum;
    minimum = std::min(minimum, other.minimum);
    maximum = std::max(maximum, other.maximum);
  }
};

template <class Stored, class ValueOf>
void add_all(Bytes bytes, Sums& sums, const ValueOf& value_of) {
  for (std::size_t at = 0; at + sizeof(Stored) <= bytes.size(); at += sizeof(Stored)) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + at, sizeof stored);
    value_of(stored, sums);
  }
}

/// The values of all numbers of a floating type of few bits.
std::vector<double> value_table(const FloatLayout& layout) {
  std::vector<double> table(std::size_t{1} << layout.bits);
  for (std::size_t bits = 0; bits < table.size(); ++bits) table[bits] = float_value(layout, bits);
  return table;
}

void add_floats(const FloatLayout& layout, const std::vector<double>& table, Bytes bytes,
                Sums& sums) {
  switch (layout.bits) {
    case 4:
      return add_all<std::uint8_t>(bytes, sums, [&table](std::uint8_t pair, Sums& to) {
        to.add(table[pair & 15U]);
        to.add(table[pair >> 4U]);
      });
    case 8:
      return add_all<std::uint8_t>(bytes, sums,
                                   [&table](std::uint8_t bits, Sums& to) { to.add(table[bits]); });
    case 16:
      return add_all<std::uint16_t>(
          bytes, sums, [&table](std::uint16_t bits, Sums& to) { to.add(table[bits]); });
    case 32:
      return add_all<float>(bytes, sums,
                            [](float value, Sums& to) { to.add(static_cast<double>(value)); });
    default:
      return add_all<double>(bytes, sums, [](double value, Sums& to) { to.add(value); });
  }
}

template <class Integer>
void add_integers(Bytes bytes, Sums& sums) {
  add_all<Integer>(bytes, sums,
                   [](Integer value, Sums& to) { to.add(static_cast<double>(value)); });
}

void add_integers(DType dtype, Bytes bytes, Sums& sums) {
  const bool is_signed = element_kind(dtype) == ElementKind::kSigned;
  switch (dtype_size(dtype)) {
    case 1:
      return is_signed ? add_integers<std::int8_t>(bytes, sums)
                       : add_integers<std::uint8_t>(bytes, sums);
    case 2:
      return is_signed ? add_integers<std::int16_t>(bytes, sums)
                       : add_integers<std::uint16_t>(bytes, sums);
    case 4:
      return is_signed ? add_integers<std::int32_t>(bytes, sums)
                       : add_integers<std::uint32_t>(bytes, sums);
    default:
      return is_signed ? add_integers<std::int64_t>(bytes, sums)
                       : add_integers<std::uint64_t>(bytes, sums);
  }
}

}  // namespace

Result<Statistics> statistics(const Checkpoint& checkpoint, const Tensor& tensor, Threads threads) {
  static_assert(std::endian::native == std::endian::little);
  CKPTVERIFY_TRY(const LogicalBytes bytes, logical_bytes(checkpoint, tensor));
  const Bytes all = bytes.view();
  const auto layout = float_layout(tensor.dtype);
  const std::vector<double> table =
      layout && layout->bits <= 16 ? value_table(*layout) : std::vector<double>();
  std::vector<Sums> ranges((all.size() + kRangeSize - 1) / kRangeSize);
  for_each_index(ranges.size(), threads, [&](std::size_t i) {
    const std::uint64_t begin = i * kRangeSize;
    const Bytes range = all.subspan(begin, std::min<std::uint64_t>(kRangeSize, all.size() - begin));
    if (layout) {
      add_floats(*layout, table, range, ranges[i]);
    } else {
      add_integers(tensor.dtype, range, ranges[i]);
    }
  });
  Sums sums;
  for (const Sums& range : ranges) sums.add(range);
  Statistics result{
      .count = sums.count, .nan = sums.nan, .infinite = sums.infinite, .zero = sums.zero};
  if (sums.finite > 0) {
    result.minimum = sums.minimum;
    result.maximum = sums.maximum;
    result.mean = sums.sum / static_cast<double>(sums.finite);
  }
  return result;
}

}  // namespace ckptverify
