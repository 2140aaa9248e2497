// JSON as values: parsed strictly (no duplicate keys, no trailing text, limited depth), written
// with the keys in the order given and floats that round-trip. Integers stay integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ckptverify/result.h"
#include "ckptverify/value.h"

namespace ckptverify {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() : value_(Null{}) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(std::uint64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  /// The whole text as one value. Errors carry the byte offset. NaN and Infinity are refused.
  static Result<Json> parse(std::string_view text);
  /// Compact with indent 0. A float that is not finite is written as the string "nan", "inf" or
  /// "-inf".
  std::string text(unsigned indent = 0) const;

  bool is_null() const { return std::holds_alternative<Null>(value_); }
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  Array* array() { return std::get_if<Array>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }
  /// An integer of that range; nothing for a float, even a whole one.
  std::optional<std::uint64_t> unsigned_integer() const;
  std::optional<std::int64_t> integer() const;
  /// A number, or one of the strings "nan", "inf", "-inf" that text() writes.
  std::optional<double> number() const;
  bool is_float() const { return std::holds_alternative<double>(value_); }

  /// A member of an object; null where this is none or has none.
  const Json* find(std::string_view key) const;
  /// Appends a member to an object (a null becomes one). The key must be new.
  Json& set(std::string key, Json value);

 private:
  // Unsigned only above int64's range, so that equal integers have one representation.
  std::variant<Null, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

/// The size of the UTF-8 sequence that the text begins with; 0 if it is none.
std::size_t utf8_sequence_size(std::string_view text);

}  // namespace ckptverify
