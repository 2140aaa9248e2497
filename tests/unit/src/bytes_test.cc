// Checked arithmetic, slices and the cursor that consumes nothing when it refuses.
#include "ckptverify/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>

namespace ckptverify {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(CheckedArithmetic, AddsUpToTheLimitAndNotBeyond) {
  EXPECT_EQ(*checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(*checked_add(kMax, 0), kMax);
  EXPECT_FALSE(checked_add(kMax, 1));
  EXPECT_FALSE(checked_add(std::uint64_t{1} << 63, std::uint64_t{1} << 63));
}

TEST(CheckedArithmetic, MultipliesUpToTheLimitAndNotBeyond) {
  EXPECT_EQ(*checked_multiply(kMax, 1), kMax);
  EXPECT_EQ(*checked_multiply(0, kMax), 0U);
  EXPECT_EQ(*checked_multiply(kMax, 0), 0U);
  EXPECT_EQ(*checked_multiply(std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1),
            0xffffffff00000000U);
  EXPECT_FALSE(checked_multiply(std::uint64_t{1} << 32, std::uint64_t{1} << 32));
}

TEST(CheckedArithmetic, ProductOfAScalarIsOne) {
  EXPECT_EQ(*checked_product({}), 1U);
  EXPECT_EQ(*checked_product(std::array<std::uint64_t, 3>{2, 3, 7}), 42U);
}

TEST(CheckedArithmetic, ProductWithAnEmptyDimensionIsZeroWhateverTheOthers) {
  EXPECT_EQ(*checked_product(std::array<std::uint64_t, 3>{kMax, kMax, 0}), 0U);
  EXPECT_FALSE(checked_product(std::array<std::uint64_t, 2>{kMax, 2}));
}

TEST(Slice, RefusesWhatLeavesTheBytesAndNamesBothEnds) {
  const Bytes bytes = as_bytes("abcdef");
  EXPECT_EQ(as_text(*slice(bytes, 2, 3)), "cde");
  EXPECT_EQ(slice(bytes, 6, 0)->size(), 0U);
  EXPECT_FALSE(slice(bytes, 7, 0));
  EXPECT_FALSE(slice(bytes, 1, kMax));
  const auto beyond = slice(bytes, 4, 3);
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message,
              testing::HasSubstr("found [4, 7), expected an end of at most 6"));
}

TEST(ByteReader, ReadsNumbersLittleEndian) {
  const std::string_view text("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  EXPECT_EQ(*ByteReader(as_bytes(text)).u8(), 0x01);
  EXPECT_EQ(*ByteReader(as_bytes(text)).u16(), 0x0201);
  EXPECT_EQ(*ByteReader(as_bytes(text)).u32(), 0x04030201U);
  EXPECT_EQ(*ByteReader(as_bytes(text)).u64(), 0x0807060504030201U);
  EXPECT_EQ(*ByteReader(as_bytes("\xfe\xff\xff\xff")).i32(), -2);
}

TEST(ByteReader, ReadsPicklesDoublesBigEndian) {
  const std::string_view text("\x3f\xf8\0\0\0\0\0\0", 8);
  EXPECT_EQ(*ByteReader(as_bytes(text)).f64_big_endian(), 1.5);
}

/// Each read of N bytes is refused for all shorter inputs and leaves the cursor where it was.
template <class Read>
void expect_refused_when_short(std::uint64_t size, Read read) {
  const std::array<std::byte, 8> zeros{};
  for (std::uint64_t available = 0; available < size; ++available) {
    ByteReader reader(Bytes(zeros).first(static_cast<std::size_t>(available)), 100);
    const auto result = read(reader);
    ASSERT_FALSE(result) << available;
    EXPECT_EQ(reader.position(), 0U);
    EXPECT_EQ(result.error().offset, 100U);
  }
  ByteReader reader(Bytes(zeros).first(static_cast<std::size_t>(size)));
  EXPECT_TRUE(read(reader));
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteReader, OverReadsAreErrorsThatConsumeNothing) {
  expect_refused_when_short(1, [](ByteReader& reader) { return reader.u8(); });
  expect_refused_when_short(2, [](ByteReader& reader) { return reader.u16(); });
  expect_refused_when_short(4, [](ByteReader& reader) { return reader.u32(); });
  expect_refused_when_short(4, [](ByteReader& reader) { return reader.i32(); });
  expect_refused_when_short(8, [](ByteReader& reader) { return reader.u64(); });
  expect_refused_when_short(8, [](ByteReader& reader) { return reader.f64_big_endian(); });
  expect_refused_when_short(5, [](ByteReader& reader) { return reader.take(5); });
}

TEST(ByteReader, TakeOfAHugeSizeIsRefused) {
  ByteReader reader(as_bytes("abc"), 10);
  ASSERT_TRUE(reader.u8());
  const auto taken = reader.take(kMax);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().offset, 11U);
  EXPECT_EQ(reader.remaining(), 2U);
}

TEST(ByteReader, SeeksInsideAndToTheEndOnly) {
  ByteReader reader(as_bytes("abc"), 10);
  EXPECT_TRUE(reader.seek(3));
  EXPECT_TRUE(reader.at_end());
  EXPECT_FALSE(reader.seek(4));
  EXPECT_EQ(reader.position(), 3U);
  EXPECT_EQ(reader.offset(), 13U);
}

TEST(ByteReader, LineWithoutAnEndConsumesNothing) {
  ByteReader reader(as_bytes("one\n\nrest"));
  EXPECT_EQ(*reader.line(), "one");
  EXPECT_EQ(*reader.line(), "");
  EXPECT_FALSE(reader.line());
  EXPECT_EQ(reader.position(), 5U);
}

}  // namespace
}  // namespace ckptverify
