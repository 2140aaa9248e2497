// Values as deterministic CBOR against RFC 8949, appendix A, and as text.
#include "ckptverify/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "ckptverify/bytes.h"

namespace ckptverify {
namespace {

std::string hex(const std::vector<std::byte>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 0xf];
  }
  return text;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::string cbor(const Value& value) {
  return hex(value_cbor(value));
}
std::string cbor_of(std::int64_t value) {
  return cbor(Value(value));
}
std::string cbor_of(double value) {
  return cbor(Value(value));
}

BigInteger big(bool negative, std::string_view magnitude) {
  return {.negative = negative, .magnitude = bytes_of(magnitude)};
}

TEST(ValueCbor, IntegersHaveTheShortestHead) {
  EXPECT_EQ(cbor_of(std::int64_t{0}), "00");
  EXPECT_EQ(cbor_of(std::int64_t{10}), "0a");
  EXPECT_EQ(cbor_of(std::int64_t{23}), "17");
  EXPECT_EQ(cbor_of(std::int64_t{24}), "1818");
  EXPECT_EQ(cbor_of(std::int64_t{100}), "1864");
  EXPECT_EQ(cbor_of(std::int64_t{255}), "18ff");
  EXPECT_EQ(cbor_of(std::int64_t{256}), "190100");
  EXPECT_EQ(cbor_of(std::int64_t{1000}), "1903e8");
  EXPECT_EQ(cbor_of(std::int64_t{65536}), "1a00010000");
  EXPECT_EQ(cbor_of(std::int64_t{1000000}), "1a000f4240");
  EXPECT_EQ(cbor_of(std::int64_t{1000000000000}), "1b000000e8d4a51000");
}

TEST(ValueCbor, NegativeIntegersCountDownFromMinusOne) {
  EXPECT_EQ(cbor_of(std::int64_t{-1}), "20");
  EXPECT_EQ(cbor_of(std::int64_t{-10}), "29");
  EXPECT_EQ(cbor_of(std::int64_t{-100}), "3863");
  EXPECT_EQ(cbor_of(std::int64_t{-1000}), "3903e7");
  EXPECT_EQ(cbor(Value(std::numeric_limits<std::int64_t>::min())), "3b7fffffffffffffff");
}

TEST(ValueCbor, BigIntegersThatFitAHeadUseNoTag) {
  EXPECT_EQ(cbor(big(false, std::string_view("\x80\0\0\0\0\0\0\0", 8))), "1b8000000000000000");
  EXPECT_EQ(cbor(big(false, "\xff\xff\xff\xff\xff\xff\xff\xff")), "1bffffffffffffffff");
  EXPECT_EQ(cbor(big(true, std::string_view("\x80\0\0\0\0\0\0\1", 8))), "3b8000000000000000");
  // -2^64
  EXPECT_EQ(cbor(big(true, std::string_view("\1\0\0\0\0\0\0\0\0", 9))), "3bffffffffffffffff");
}

TEST(ValueCbor, LargerBigIntegersUseTags2And3) {
  EXPECT_EQ(cbor(big(false, std::string_view("\1\0\0\0\0\0\0\0\0", 9))), "c249010000000000000000");
  EXPECT_EQ(cbor(big(true, std::string_view("\1\0\0\0\0\0\0\0\1", 9))), "c349010000000000000000");
}

TEST(ValueCbor, FloatsAreShortenedWhereNothingIsLost) {
  EXPECT_EQ(cbor_of(0.0), "f90000");
  EXPECT_EQ(cbor_of(-0.0), "f98000");
  EXPECT_EQ(cbor_of(1.0), "f93c00");
  EXPECT_EQ(cbor_of(1.1), "fb3ff199999999999a");
  EXPECT_EQ(cbor_of(1.5), "f93e00");
  EXPECT_EQ(cbor_of(65504.0), "f97bff");
  EXPECT_EQ(cbor_of(100000.0), "fa47c35000");
  EXPECT_EQ(cbor_of(3.4028234663852886e+38), "fa7f7fffff");
  EXPECT_EQ(cbor_of(1.0e+300), "fb7e37e43c8800759c");
  EXPECT_EQ(cbor_of(5.960464477539063e-8), "f90001");
  EXPECT_EQ(cbor_of(0.00006103515625), "f90400");
  EXPECT_EQ(cbor_of(-4.0), "f9c400");
  EXPECT_EQ(cbor_of(-4.1), "fbc010666666666666");
}

TEST(ValueCbor, FloatsAtTheEdgesOfHalfPrecision) {
  EXPECT_EQ(cbor_of(65505.0), "fa477fe100");               // between halves
  EXPECT_EQ(cbor_of(65536.0), "fa47800000");               // above the largest half
  EXPECT_EQ(cbor_of(std::ldexp(1023.0, -24)), "f903ff");   // largest subnormal half
  EXPECT_EQ(cbor_of(std::ldexp(3.0, -25)), "fa33c00000");  // half a unit too fine
  EXPECT_EQ(cbor_of(std::ldexp(1.0, -25)), "fa33000000");
  EXPECT_EQ(cbor_of(std::ldexp(1.0, -149)), "fa00000001");  // smallest single
  EXPECT_EQ(cbor_of(std::ldexp(1.0, -150)), "fb3690000000000000");
}

TEST(ValueCbor, SpecialFloatsAreHalves) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(cbor_of(infinity), "f97c00");
  EXPECT_EQ(cbor_of(-infinity), "f9fc00");
  EXPECT_EQ(cbor_of(std::numeric_limits<double>::quiet_NaN()), "f97e00");
  EXPECT_EQ(cbor_of(-std::numeric_limits<double>::quiet_NaN()), "f97e00");
}

TEST(ValueCbor, IntegersAndFloatsAreDistinct) {
  EXPECT_NE(cbor_of(std::int64_t{1}), cbor_of(1.0));
  EXPECT_NE(cbor(Value(true)), cbor_of(std::int64_t{1}));
}

TEST(ValueCbor, TextBytesAndTheEmptyContainers) {
  EXPECT_EQ(cbor(Value(false)), "f4");
  EXPECT_EQ(cbor(Value(true)), "f5");
  EXPECT_EQ(cbor(Value(Null())), "f6");
  EXPECT_EQ(cbor(Value(std::string())), "60");
  EXPECT_EQ(cbor(Value(std::string("IETF"))), "6449455446");
  EXPECT_EQ(cbor(Value(std::string("\xc3\xbc"))), "62c3bc");
  EXPECT_EQ(cbor(Value(std::string(24, 'a'))).substr(0, 4), "7818");
  EXPECT_EQ(cbor(Value(ByteString())), "40");
  EXPECT_EQ(cbor(Value(ByteString{.bytes = bytes_of("\1\2\3\4")})), "4401020304");
  EXPECT_EQ(cbor(Value(EmptyList())), "80");
  EXPECT_EQ(cbor(Value(EmptyMap())), "a0");
}

TEST(ValueText, ReadsLikeTheValue) {
  EXPECT_EQ(value_text(std::int64_t{-3}), "-3");
  EXPECT_EQ(value_text(1.0), "1.0");
  EXPECT_EQ(value_text(0.1), "0.1");
  EXPECT_EQ(value_text(1e-5), "1e-05");
  EXPECT_EQ(value_text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(value_text(Null()), "null");
  EXPECT_EQ(value_text(true), "true");
  EXPECT_EQ(value_text(EmptyList()), "[]");
  EXPECT_EQ(value_text(EmptyMap()), "{}");
  EXPECT_EQ(value_text(ByteString{.bytes = {std::byte{0}, std::byte{255}}}), "b\"00ff\"");
}

TEST(ValueText, ShowsBigIntegersInDecimal) {
  EXPECT_EQ(value_text(big(false, std::string_view("\1\0\0\0\0\0\0\0\0", 9))),
            "18446744073709551616");
  EXPECT_EQ(value_text(big(true, std::string_view("\x80\0\0\0\0\0\0\1", 8))),
            "-9223372036854775809");
  // 10^18: a limb of nine zeros in the middle
  EXPECT_EQ(value_text(big(false, std::string_view("\x0d\xe0\xb6\xb3\xa7\x64\0\0", 8))),
            "1000000000000000000");
}

TEST(ValueText, ATerminalIsNotMovedByAString) {
  EXPECT_EQ(value_text(std::string("a\x1b[2J\"\\\n")), "\"a\\x1b[2J\\\"\\\\\\x0a\"");
}

TEST(ValueType, BothKindsOfIntegersAreInt) {
  EXPECT_EQ(value_type(std::int64_t{1}), "int");
  EXPECT_EQ(value_type(big(false, "\xff\xff\xff\xff\xff\xff\xff\xff")), "int");
  EXPECT_EQ(value_type(1.0), "float");
  EXPECT_EQ(value_type(std::string()), "string");
  EXPECT_EQ(value_type(EmptyMap()), "map");
}

}  // namespace
}  // namespace ckptverify
