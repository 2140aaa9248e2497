// A plain value of a training state: what a tensor is not. Lists and maps are walked into entries;
// only empty ones are values themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ckptverify {

struct Null {
  friend bool operator==(Null, Null) = default;
};
struct EmptyList {
  friend bool operator==(EmptyList, EmptyList) = default;
};
struct EmptyMap {
  friend bool operator==(EmptyMap, EmptyMap) = default;
};

/// An integer outside of int64: sign and magnitude, big-endian without leading zero bytes.
struct BigInteger {
  bool negative = false;
  std::vector<std::byte> magnitude;
  friend bool operator==(const BigInteger&, const BigInteger&) = default;
};

struct ByteString {
  std::vector<std::byte> bytes;
  friend bool operator==(const ByteString&, const ByteString&) = default;
};

/// An integer that fits int64 is always the int64, so that equal values have one representation.
/// Floats compare by value here; the fingerprint compares their bits (one NaN).
using Value = std::variant<Null, bool, std::int64_t, BigInteger, double, std::string, ByteString,
                           EmptyList, EmptyMap>;

/// "null", "bool", "int", "float", "string", "bytes", "list", "map".
std::string_view value_type(const Value& value);

/// For people: 3, 0.1, "text", b"00ff", [], {}. Floats round-trip.
std::string value_text(const Value& value);

/// Deterministic CBOR, RFC 8949 section 4.2.1, as docs/fingerprint.md says.
std::vector<std::byte> value_cbor(const Value& value);

}  // namespace ckptverify
