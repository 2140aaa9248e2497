// The strict JSON parser, on the event interface of nlohmann's: what that library would forgive
// (duplicate keys, depth, integers that turn into floats, a NUL as the end) is refused here.
#include "ckptverify/json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace ckptverify {

namespace {

// Values are destroyed and written by recursion; headers and indexes nest under ten levels.
constexpr std::size_t kDepthMax = 256;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Reads characters and counts them for all of its copies.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* position, std::size_t* count) : position_(position), count_(count) {}
  reference operator*() const { return *position_; }
  CountingIterator& operator++() {
    ++position_;
    ++*count_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.position_ == b.position_;
  }

 private:
  const char* position_;
  std::size_t* count_;
};

/// Builds the value from the parser's events; false stops the parser, error() says why.
class Builder {
 public:
  Builder(std::string_view text, const std::size_t& consumed) : text_(text), consumed_(consumed) {}

  bool null() { return add({}); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return add(value);
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(double value, const std::string& token) {
    if (token.find_first_of(".eE") != std::string::npos) return add(value);
    return refuse("an integer does not fit 64 bits; found " + token.substr(0, 40) + ", expected " +
                      std::to_string(std::numeric_limits<std::int64_t>::min()) + " to " +
                      std::to_string(std::numeric_limits<std::uint64_t>::max()),
                  last_offset());
  }
  bool string(std::string& value) { return add(std::move(value)); }
  template <class Binary>
  bool binary(Binary&) {
    return refuse("binary data in a text", last_offset());
  }

  bool start_object(std::size_t) { return open(Json::Object()); }
  bool start_array(std::size_t) { return open(Json::Array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Frame& frame = frames_.back();
    if (!frame.keys.insert(name).second)
      return refuse(
          "a key is given twice in one object; found \"" + name + "\" again, expected it once",
          key_offset());
    frame.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& cause) {
    // The library counts from 1 and gives its class and line before the reason.
    std::string_view reason = cause.what();
    for (const std::string_view prefix : {"] ", "column ", ": "}) {
      const std::size_t start = reason.find(prefix);
      if (start != std::string_view::npos) reason.remove_prefix(start + prefix.size());
    }
    const std::size_t offset = position == 0 ? 0 : position - 1;
    return refuse("invalid JSON: " + std::string(reason), std::min(offset, text_.size()));
  }

  Json take() { return std::move(root_); }
  Error take_error() { return std::move(error_); }

 private:
  struct Frame {
    Json container;
    std::string key;  // of the member that comes next
    std::unordered_set<std::string> keys;
  };

  bool refuse(std::string message, std::size_t offset) {
    error_ = Error{.message = std::move(message), .offset = offset};
    return false;
  }

  std::size_t last_offset() const { return consumed_ == 0 ? 0 : consumed_ - 1; }

  /// Of the opening quote of the string that was just read: inner quotes follow a backslash.
  std::size_t key_offset() const {
    std::size_t position = last_offset();
    while (position > 0) {
      --position;
      if (text_[position] == '"' && (position == 0 || text_[position - 1] != '\\')) break;
    }
    return position;
  }

  bool open(Json container) {
    if (frames_.size() == kDepthMax) {
      return refuse("values nest too deeply; found more than " + std::to_string(kDepthMax) +
                        " levels, expected at most that",
                    last_offset());
    }
    frames_.push_back({.container = std::move(container), .key = {}, .keys = {}});
    return true;
  }

  bool close() {
    Json closed = std::move(frames_.back().container);
    frames_.pop_back();
    return add(std::move(closed));
  }

  bool add(Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Frame& frame = frames_.back();
    if (Json::Array* array = frame.container.array())
      array->push_back(std::move(value));
    else
      frame.container.object()->emplace_back(std::move(frame.key), std::move(value));
    return true;
  }

  std::string_view text_;
  const std::size_t& consumed_;
  std::vector<Frame> frames_;
  Json root_;
  Error error_;
};

}  // namespace

/// Unicode, table 3-7.
std::size_t utf8_sequence_size(std::string_view text) {
  const auto at = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const auto continues = [&at](std::size_t i) { return at(i) >= 0x80 && at(i) <= 0xbf; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  const unsigned second = at(1);
  if (lead >= 0xe0 && lead <= 0xef) {
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

Result<Json> Json::parse(std::string_view text) {
  // The library skips the first and ends at the second.
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    return Error{.message = "invalid JSON: found a byte order mark, expected a value", .offset = 0};
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    return Error{.message = "invalid JSON: found a NUL byte, expected text", .offset = nul};
  std::size_t consumed = 0;
  Builder builder(text, consumed);
  try {
    const bool complete =
        nlohmann::json::sax_parse(CountingIterator(text.data(), &consumed),
                                  CountingIterator(text.data() + text.size(), &consumed), &builder);
    if (!complete) return builder.take_error();
  } catch (const nlohmann::json::exception& cause) {
    return Error{.message = std::string("invalid JSON: ") + cause.what(), .offset = consumed};
  }
  return builder.take();
}

std::optional<std::uint64_t> Json::unsigned_integer() const {
  if (const auto* large = std::get_if<std::uint64_t>(&value_)) return *large;
  const auto* integer = std::get_if<std::int64_t>(&value_);
  if (integer == nullptr || *integer < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*integer);
}

std::optional<std::int64_t> Json::integer() const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) return *integer;
  const auto* large = std::get_if<std::uint64_t>(&value_);
  if (large == nullptr ||
      *large > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  return static_cast<std::int64_t>(*large);
}

std::optional<double> Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto whole = integer()) return static_cast<double>(*whole);
  if (const auto large = unsigned_integer()) return static_cast<double>(*large);
  const std::string* name = string();
  if (name == nullptr) return std::nullopt;
  if (*name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (*name == "inf") return std::numeric_limits<double>::infinity();
  if (*name == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

const Json* Json::find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const Member& member : *members)
    if (member.first == key) return &member.second;
  return nullptr;
}

Json& Json::set(std::string key, Json value) {
  if (is_null()) value_ = Object();
  CKPTVERIFY_ASSERT(object() != nullptr);
  CKPTVERIFY_ASSERT(find(key) == nullptr);
  object()->emplace_back(std::move(key), std::move(value));
  return *this;
}

}  // namespace ckptverify
