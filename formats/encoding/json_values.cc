// Python's json module writes NaN, Infinity and -Infinity where JSON has no word for them. They are
// replaced by strings that no writer makes before the strict parser sees the text.
#include "formats/encoding/json_values.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace ckptverify {
namespace {

struct Word {
  std::string_view text;
  std::string_view stand_in;  // as JSON
  std::string_view parsed;    // what that parses to
  double value;
};

using namespace std::string_view_literals;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kWords = {
    Word{"-Infinity", R"("\u0000-inf")", "\0-inf"sv, -kInfinity},
    Word{"Infinity", R"("\u0000inf")", "\0inf"sv, kInfinity},
    Word{"NaN", R"("\u0000nan")", "\0nan"sv, std::numeric_limits<double>::quiet_NaN()},
};

struct StrictText {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> stand_ins;  // end in `text`, bytes added so far
};

/// The index behind a string that begins at `start`.
std::size_t string_end(std::string_view text, std::size_t start) {
  std::size_t i = start + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2U : 1U;
  return std::min(i + 1, text.size());
}

StrictText strict_text(std::string_view text) {
  StrictText strict;
  std::size_t added = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      const std::size_t end = string_end(text, i);
      strict.text += text.substr(i, end - i);
      i = end;
      continue;
    }
    const auto word = std::find_if(kWords.begin(), kWords.end(), [&](const Word& candidate) {
      return text.substr(i).starts_with(candidate.text);
    });
    if (word == kWords.end()) {
      strict.text += text[i++];
      continue;
    }
    strict.text += word->stand_in;
    added += word->stand_in.size() - word->text.size();
    strict.stand_ins.emplace_back(strict.text.size(), added);
    i += word->text.size();
  }
  return strict;
}

Value leaf_value(const Json& json) {
  if (const bool* boolean = json.boolean()) return *boolean;
  if (json.is_float()) return *json.number();
  if (const std::string* string = json.string()) {
    for (const Word& word : kWords)
      if (*string == word.parsed) return word.value;
    return *string;
  }
  if (const auto integer = json.integer()) return *integer;
  if (auto large = json.unsigned_integer()) {
    BigInteger big;
    for (int shift = 56; shift >= 0; shift -= 8)
      big.magnitude.push_back(static_cast<std::byte>(*large >> shift & 0xff));
    return big;
  }
  return Null{};
}

}  // namespace

void append_json_values(const Json& value, const std::string& path, std::vector<Entry>& entries) {
  const std::string prefix = path.empty() ? "" : path + ".";
  const Json::Object* object = value.object();
  const Json::Array* array = value.array();
  if (object != nullptr && !object->empty()) {
    for (const auto& [key, member] : *object) append_json_values(member, prefix + key, entries);
  } else if (array != nullptr && !array->empty()) {
    for (std::size_t i = 0; i < array->size(); ++i)
      append_json_values((*array)[i], prefix + std::to_string(i), entries);
  } else if (object != nullptr) {
    entries.push_back({.path = path, .node = Value(EmptyMap{})});
  } else if (array != nullptr) {
    entries.push_back({.path = path, .node = Value(EmptyList{})});
  } else {
    entries.push_back({.path = path, .node = leaf_value(value)});
  }
}

Result<std::vector<Entry>> json_values(std::string_view text) {
  const StrictText strict = strict_text(text);
  auto json = Json::parse(strict.text);
  if (!json) {
    Error error = std::move(json).error();
    if (error.offset) {
      std::size_t added = 0;
      for (const auto& [end, so_far] : strict.stand_ins)
        if (*error.offset >= end) added = so_far;
      *error.offset -= added;
    }
    return error;
  }
  std::vector<Entry> entries;
  append_json_values(*json, "", entries);
  return entries;
}

}  // namespace ckptverify
