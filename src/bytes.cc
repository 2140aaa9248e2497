// Checked arithmetic, the one slice function, and the cursor.
#include "ckptverify/bytes.h"

#include <bit>
#include <limits>

namespace ckptverify {

namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

template <class T>
T little_endian(Bytes bytes) {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;)
    value = static_cast<T>((std::uint64_t{value} << 8) | std::to_integer<std::uint64_t>(bytes[i]));
  return value;
}

}  // namespace

Bytes as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

std::string_view as_text(Bytes bytes) {
  // char may alias every object.
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  if (b > kMax - a) {
    return Error{.message = "a size does not fit 64 bits; found " + std::to_string(a) + " + " +
                            std::to_string(b) + ", expected at most " + std::to_string(kMax)};
  }
  return a + b;
}

Result<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  if (a != 0 && b > kMax / a) {
    return Error{.message = "a size does not fit 64 bits; found " + std::to_string(a) + " * " +
                            std::to_string(b) + ", expected at most " + std::to_string(kMax)};
  }
  return a * b;
}

Result<std::uint64_t> checked_product(std::span<const std::uint64_t> dimensions) {
  // An empty dimension makes the product 0 wherever it stands.
  for (const std::uint64_t dimension : dimensions)
    if (dimension == 0) return std::uint64_t{0};
  std::uint64_t product = 1;
  for (const std::uint64_t dimension : dimensions) {
    CKPTVERIFY_TRY(product, checked_multiply(product, dimension));
  }
  return product;
}

Result<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    const auto end = checked_add(offset, size);
    return Error{.message = "a range lies outside of the data; found [" + std::to_string(offset) +
                            ", " + (end ? std::to_string(*end) : "beyond 64 bits") +
                            "), expected an end of at most " + std::to_string(bytes.size()),
                 .offset = offset};
  }
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

Result<void> ByteReader::seek(std::uint64_t position) {
  if (position > bytes_.size()) {
    return Error{.message = "a position lies outside of the data; found " +
                            std::to_string(position) + ", expected at most " +
                            std::to_string(bytes_.size()),
                 .offset = offset()};
  }
  position_ = position;
  return {};
}

Result<Bytes> ByteReader::take(std::uint64_t size) {
  if (size > remaining()) {
    return Error{.message = "the data ends too early; found " + std::to_string(remaining()) +
                            " bytes, expected " + std::to_string(size),
                 .offset = offset()};
  }
  const Bytes taken =
      bytes_.subspan(static_cast<std::size_t>(position_), static_cast<std::size_t>(size));
  position_ += size;
  return taken;
}

Result<std::uint8_t> ByteReader::u8() {
  CKPTVERIFY_TRY(const Bytes bytes, take(1));
  return std::to_integer<std::uint8_t>(bytes[0]);
}

Result<std::uint16_t> ByteReader::u16() {
  CKPTVERIFY_TRY(const Bytes bytes, take(2));
  return little_endian<std::uint16_t>(bytes);
}

Result<std::uint32_t> ByteReader::u32() {
  CKPTVERIFY_TRY(const Bytes bytes, take(4));
  return little_endian<std::uint32_t>(bytes);
}

Result<std::uint64_t> ByteReader::u64() {
  CKPTVERIFY_TRY(const Bytes bytes, take(8));
  return little_endian<std::uint64_t>(bytes);
}

Result<std::int32_t> ByteReader::i32() {
  CKPTVERIFY_TRY(const std::uint32_t bits, u32());
  return std::bit_cast<std::int32_t>(bits);
}

Result<double> ByteReader::f64_big_endian() {
  CKPTVERIFY_TRY(const Bytes bytes, take(8));
  std::uint64_t bits = 0;
  for (const std::byte byte : bytes) bits = (bits << 8) | std::to_integer<std::uint64_t>(byte);
  return std::bit_cast<double>(bits);
}

Result<std::string_view> ByteReader::line() {
  const std::string_view rest = as_text(bytes_.subspan(static_cast<std::size_t>(position_)));
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    return Error{.message = "a line does not end; found " + std::to_string(rest.size()) +
                            " bytes without a line feed, expected one",
                 .offset = offset()};
  }
  position_ += end + 1;
  return rest.substr(0, end);
}

}  // namespace ckptverify
