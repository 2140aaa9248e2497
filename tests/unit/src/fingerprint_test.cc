// The fingerprint against vectors that somebody else computed from docs/fingerprint.md alone, and
// its promises: no dependence on threads or layout, and no bit that it overlooks.
#include "ckptverify/fingerprint.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "ckptverify/json.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;

// ---- The vectors of the blind implementation ----

std::string string_member(const Json& item, std::string_view key) {
  const Json* member = item.find(key);
  return member != nullptr && member->string() != nullptr ? *member->string() : std::string();
}

std::uint64_t integer_member(const Json& item, std::string_view key) {
  return item.find(key)->unsigned_integer().value();
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 2 <= hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::vector<std::byte> data_of(const Json& data) {
  if (data.string() != nullptr) return from_hex(*data.string());
  const std::uint64_t multiplier = integer_member(data, "mul");
  const std::uint64_t added = integer_member(data, "add");
  const std::uint64_t modulus = integer_member(data, "mod");
  std::vector<std::byte> bytes(integer_member(data, "size"));
  for (std::uint64_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * multiplier + added) % modulus);
  }
  return bytes;
}

std::vector<std::uint64_t> shape_of(const Json& item) {
  std::vector<std::uint64_t> shape;
  for (const Json& dimension : *item.find("shape")->array()) {
    shape.push_back(dimension.unsigned_integer().value());
  }
  return shape;
}

/// The magnitude of a decimal number, big-endian without leading zeros.
std::vector<std::byte> magnitude_of(std::string_view digits) {
  std::vector<std::byte> bytes;  // little-endian while it grows
  for (const char digit : digits) {
    unsigned carry = static_cast<unsigned>(digit - '0');
    for (std::byte& byte : bytes) {
      carry += std::to_integer<unsigned>(byte) * 10;
      byte = static_cast<std::byte>(carry & 0xff);
      carry >>= 8;
    }
    if (carry != 0) bytes.push_back(static_cast<std::byte>(carry));
  }
  return {bytes.rbegin(), bytes.rend()};
}

Value integer_of(const std::string& text) {
  std::int64_t small = 0;
  std::istringstream in(text);
  if (in >> small) return Value(small);
  const bool negative = text.front() == '-';
  return BigInteger{negative, magnitude_of(std::string_view(text).substr(negative ? 1 : 0))};
}

Value value_of(const Json& item) {
  const std::string type = string_member(item, "type");
  const std::string text = string_member(item, "value");
  if (type == "null") return Null{};
  if (type == "bool") return *item.find("value")->boolean();
  if (type == "int") return integer_of(text);
  if (type == "float") return std::bit_cast<double>(std::stoull(text, nullptr, 16));
  const std::vector<std::byte> bytes = from_hex(text);
  if (type == "string") return std::string(as_text(bytes));
  if (type == "bytes") return ByteString{bytes};
  EXPECT_TRUE(item.find("value")->array()->empty()) << type;
  if (type == "list") return EmptyList{};
  EXPECT_EQ(type, "map");
  return EmptyMap{};
}

Digest digest_of(const Json& item);

std::vector<std::pair<std::string, Digest>> named_digests(const Json& list, const char* name) {
  std::vector<std::pair<std::string, Digest>> digests;
  for (const Json& item : *list.array()) {
    digests.emplace_back(string_member(item, name), digest_of(item));
  }
  return digests;
}

Digest digest_of(const Json& item) {
  const std::string kind = string_member(item, "kind");
  const std::string dtype = string_member(item, "dtype");
  if (kind == "tensor") return tensor_digest(dtype, shape_of(item), data_of(*item.find("data")));
  if (kind == "absent") return absent_tensor_digest(dtype, shape_of(item));
  if (kind == "value") return value_digest(value_of(item));
  if (kind == "node") {
    return composite_digest(string_member(item, "node_kind"),
                            named_digests(*item.find("parts"), "name"));
  }
  if (kind == "checkpoint") {
    return checkpoint_digest(named_digests(*item.find("components"), "label"));
  }
  EXPECT_EQ(kind, "component");
  Json::Array entries;
  for (const Json& entry : *item.find("entries")->array()) {
    const bool wanted =
        string_member(item, "of") == "all" || string_member(entry, "kind") != "value";
    if (wanted) entries.push_back(entry);
  }
  return component_digest(named_digests(Json(entries), "path"));
}

TEST(FingerprintVectors, AgreeWithAnImplementationWrittenBlind) {
  std::ifstream file(CKPTVERIFY_SOURCE "/tests/unit/src/fingerprint_vectors.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto json = Json::parse(text);
  ASSERT_TRUE(json) << json.error().text();
  const Json::Array& vectors = *json->find("vectors")->array();
  EXPECT_GE(vectors.size(), 60U);
  for (const Json& vector : vectors) {
    EXPECT_EQ(digest_of(vector).text(), string_member(vector, "digest"))
        << string_member(vector, "name");
  }
}

}  // namespace
}  // namespace ckptverify
