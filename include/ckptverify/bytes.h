// The only way to touch bytes that somebody else wrote. Every slice and every read is checked
// against the bounds; sizes from a file are added and multiplied by the checked functions alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ckptverify/result.h"

namespace ckptverify {

using Bytes = std::span<const std::byte>;

Bytes as_bytes(std::string_view text);
std::string_view as_text(Bytes bytes);

/// a + b and a * b; an error where 64 bits are too few.
Result<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b);
Result<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b);

/// The product of all dimensions; 1 for a scalar.
Result<std::uint64_t> checked_product(std::span<const std::uint64_t> dimensions);

/// bytes[offset, offset + size); the error names both ends.
Result<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size);

/// A cursor over bytes. Offsets in errors are `base` + position, so that a reader of a part of a
/// file still speaks of the file's bytes. A read that does not fit consumes nothing.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes, std::uint64_t base = 0) : bytes_(bytes), base_(base) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t offset() const { return base_ + position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }
  bool at_end() const { return remaining() == 0; }

  Result<void> seek(std::uint64_t position);
  Result<Bytes> take(std::uint64_t size);
  Result<std::uint8_t> u8();
  Result<std::uint16_t> u16();  // all little-endian unless the name says otherwise
  Result<std::uint32_t> u32();
  Result<std::uint64_t> u64();
  Result<std::int32_t> i32();
  Result<double> f64_big_endian();
  /// The text up to the next '\n', which is consumed and not returned.
  Result<std::string_view> line();

 private:
  Bytes bytes_;
  std::uint64_t base_;
  std::uint64_t position_ = 0;
};

}  // namespace ckptverify
