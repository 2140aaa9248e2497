// Text with {names} in it. `{{` and `}}` stand for the braces themselves; {step:07} fills a number
// up with zeros to that many digits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/result.h"

namespace ckptverify {

/// The value of a name; nothing where there is none.
using PlaceholderValue = std::function<std::optional<std::string>(const std::string& name)>;

/// The names in order of appearance, or what is wrong with the text.
Result<std::vector<std::string>> placeholder_names(std::string_view text);

Result<std::string> fill_placeholders(std::string_view text, const PlaceholderValue& value);

/// The known word that is written most like `word`; empty where none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace ckptverify
