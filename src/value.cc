// Plain values as text and as deterministic CBOR (RFC 8949, section 4.2.1).
#include "ckptverify/value.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ckptverify/bytes.h"

namespace ckptverify {

namespace {

// Major types, RFC 8949 section 3.1.
enum class Major : std::uint8_t { kUnsigned = 0, kNegative = 1, kBytes = 2, kText = 3, kTag = 6 };

constexpr std::uint8_t kTagPositive = 2;  // section 3.4.3
constexpr std::uint8_t kTagNegative = 3;

// Above it, integers are shown in hexadecimal: decimal digits cost quadratic time.
constexpr std::size_t kDecimalBytesMax = 1024;

class CborWriter {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(std::byte{value}); }

  void append(Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  /// The low `size` bytes, big-endian.
  void number(std::uint64_t value, unsigned size) {
    for (unsigned i = size; i-- > 0;) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  /// Shortest head, section 4.2.1.
  void head(Major major, std::uint64_t value) {
    const unsigned top = static_cast<unsigned>(major) << 5;
    if (value < 24) return byte(static_cast<std::uint8_t>(top | value));
    const unsigned log = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;
    byte(static_cast<std::uint8_t>(top | (24 + log)));
    number(value, 1U << log);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// The half-precision bits of a float that half precision holds exactly.
std::optional<std::uint16_t> exact_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t fraction = bits & 0x7fffff;
  const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127;
  const auto half = [sign](std::uint32_t rest) { return static_cast<std::uint16_t>(sign | rest); };
  if (exponent == -127 && fraction == 0) return half(0);
  if (exponent == 128) return fraction == 0 ? std::optional(half(0x7c00)) : std::nullopt;
  if (exponent > 15 || exponent < -24) return std::nullopt;
  if (exponent >= -14) {
    if ((fraction & 0x1fff) != 0) return std::nullopt;
    return half((static_cast<std::uint32_t>(exponent + 15) << 10) | (fraction >> 13));
  }
  // Subnormal halves count units of 2^-24.
  const std::uint32_t whole = fraction | 0x800000;
  const auto shift = static_cast<std::uint32_t>(-1 - exponent);
  if ((whole & ((1U << shift) - 1)) != 0) return std::nullopt;
  return half(whole >> shift);
}

bool float_holds(double value) {
  if (std::isinf(value)) return true;
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) return false;
  return static_cast<double>(static_cast<float>(value)) == value;
}

void write(CborWriter& writer, double value) {
  if (std::isnan(value)) {
    writer.byte(0xf9);
    return writer.number(0x7e00, 2);
  }
  if (!float_holds(value)) {
    writer.byte(0xfb);
    return writer.number(std::bit_cast<std::uint64_t>(value), 8);
  }
  const auto single = static_cast<float>(value);
  if (const auto half = exact_half(single)) {
    writer.byte(0xf9);
    return writer.number(*half, 2);
  }
  writer.byte(0xfa);
  writer.number(std::bit_cast<std::uint32_t>(single), 4);
}

void write(CborWriter& writer, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0) return writer.head(Major::kUnsigned, bits);
  writer.head(Major::kNegative, ~bits);  // -1 - value
}

Bytes without_leading_zeros(Bytes magnitude) {
  while (!magnitude.empty() && magnitude[0] == std::byte{0}) magnitude = magnitude.subspan(1);
  return magnitude;
}

/// magnitude - 1, for a magnitude of at least 1.
std::vector<std::byte> decremented(Bytes magnitude) {
  std::vector<std::byte> bytes(magnitude.begin(), magnitude.end());
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const auto digit = std::to_integer<unsigned>(bytes[i]);
    bytes[i] = static_cast<std::byte>((digit + 0xff) & 0xff);
    if (digit != 0) break;
  }
  return bytes;
}

void write(CborWriter& writer, const BigInteger& value) {
  Bytes digits = without_leading_zeros(value.magnitude);
  const bool negative = value.negative && !digits.empty();
  const std::vector<std::byte> below = negative ? decremented(digits) : std::vector<std::byte>();
  if (negative) digits = without_leading_zeros(below);
  if (digits.size() <= 8) {
    std::uint64_t number = 0;
    for (const std::byte digit : digits) number = (number << 8) | std::to_integer<unsigned>(digit);
    return writer.head(negative ? Major::kNegative : Major::kUnsigned, number);
  }
  writer.head(Major::kTag, negative ? kTagNegative : kTagPositive);
  writer.head(Major::kBytes, digits.size());
  writer.append(digits);
}

void write(CborWriter& writer, Null) {
  writer.byte(0xf6);
}
void write(CborWriter& writer, bool value) {
  writer.byte(value ? 0xf5 : 0xf4);
}
void write(CborWriter& writer, EmptyList) {
  writer.byte(0x80);
}
void write(CborWriter& writer, EmptyMap) {
  writer.byte(0xa0);
}

void write(CborWriter& writer, const std::string& value) {
  writer.head(Major::kText, value.size());
  writer.append(as_bytes(value));
}

void write(CborWriter& writer, const ByteString& value) {
  writer.head(Major::kBytes, value.bytes.size());
  writer.append(value.bytes);
}

std::string hexadecimal(Bytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 0xf];
  }
  return text;
}

std::string decimal(Bytes magnitude) {
  // Base 10^9, least significant first.
  constexpr std::uint64_t kBase = 1'000'000'000;
  std::vector<std::uint64_t> limbs = {0};
  for (const std::byte byte : magnitude) {
    std::uint64_t carry = std::to_integer<unsigned>(byte);
    for (std::uint64_t& limb : limbs) {
      limb = limb * 256 + carry;
      carry = limb / kBase;
      limb %= kBase;
    }
    if (carry != 0) limbs.push_back(carry);
  }
  std::string text = std::to_string(limbs.back());
  for (std::size_t i = limbs.size() - 1; i-- > 0;) {
    const std::string digits = std::to_string(limbs[i]);
    text += std::string(9 - digits.size(), '0') + digits;
  }
  return text;
}

std::string text_of(Null) {
  return "null";
}
std::string text_of(bool value) {
  return value ? "true" : "false";
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(EmptyList) {
  return "[]";
}
std::string text_of(EmptyMap) {
  return "{}";
}

std::string text_of(const BigInteger& value) {
  const std::string digits = value.magnitude.size() <= kDecimalBytesMax
                                 ? decimal(value.magnitude)
                                 : "0x" + hexadecimal(value.magnitude);
  return value.negative ? "-" + digits : digits;
}

std::string text_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string text_of(const std::string& value) {
  std::string text = "\"";
  for (const char character : value) {
    if (character == '"' || character == '\\') text += '\\';
    if (static_cast<unsigned char>(character) >= 0x20 && character != 0x7f) {
      text += character;
      continue;
    }
    // A terminal must not obey what a checkpoint says.
    std::array<char, 8> escape;
    std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(character));
    text += escape.data();
  }
  return text + '"';
}

std::string text_of(const ByteString& value) {
  return "b\"" + hexadecimal(value.bytes) + '"';
}

}  // namespace

std::string_view value_type(const Value& value) {
  static constexpr std::array<std::string_view, std::variant_size_v<Value>> kNames = {
      "null", "bool", "int", "int", "float", "string", "bytes", "list", "map"};
  return kNames[value.index()];
}

std::string value_text(const Value& value) {
  return std::visit([](const auto& held) { return text_of(held); }, value);
}

std::vector<std::byte> value_cbor(const Value& value) {
  CborWriter writer;
  std::visit([&writer](const auto& held) { write(writer, held); }, value);
  return writer.take();
}

}  // namespace ckptverify
