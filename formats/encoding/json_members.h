// Where the members of a JSON object stand in its text, which parsed values no longer know. For
// text that Json::parse() has accepted as an object.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace ckptverify {

/// [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// One range a member of the outermost object, in order: from its key's quotation mark to the end
/// of its value.
std::vector<TextRange> json_member_ranges(std::string_view text);

}  // namespace ckptverify
