// A scan for brackets, strings and commas: enough for text whose grammar has been checked.
#include "formats/encoding/json_members.h"

#include <optional>

namespace ckptverify {
namespace {

constexpr std::string_view kSpace = " \t\n\r";

/// The position after the string that begins at `begin`.
std::size_t string_end(std::string_view text, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2U : 1U;
  return i + 1;
}

}  // namespace

std::vector<TextRange> json_member_ranges(std::string_view text) {
  std::vector<TextRange> ranges;
  std::optional<TextRange> member;  // grows to the last character that is no space
  int depth = 0;
  const auto close = [&] {
    if (member) ranges.push_back(*member);
    member.reset();
  };
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t next = c == '"' ? string_end(text, i) : i + 1;
    if (c == '}' || c == ']') --depth;
    if (depth == 0 && c == '}') close();
    const bool separates = depth == 1 && c == ',';
    if (separates) close();
    const bool inside = depth > 1 || (depth == 1 && !separates);
    if (inside && kSpace.find(c) == std::string_view::npos) {
      if (!member) member = TextRange{i, next};
      member->end = next;
    }
    if (c == '{' || c == '[') ++depth;
    i = next;
  }
  return ranges;
}

}  // namespace ckptverify
