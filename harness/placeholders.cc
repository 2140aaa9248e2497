// A scanner of one level: what is put in for a name is not scanned again.

#include "harness/placeholders.h"

#include <algorithm>
#include <numeric>

namespace ckptverify {
namespace {

/// Calls `literal` and `name` for the parts of the text, in order.
Result<void> scan(std::string_view text, const std::function<void(std::string_view)>& literal,
                  const std::function<Result<void>(const std::string&)>& name) {
  const std::string whole(text);
  while (!text.empty()) {
    const std::size_t brace = std::min(text.find_first_of("{}"), text.size());
    literal(text.substr(0, brace));
    text.remove_prefix(brace);
    if (text.empty()) return {};
    if (text.size() > 1 && text[0] == text[1]) {
      literal(text.substr(0, 1));
      text.remove_prefix(2);
      continue;
    }
    const std::size_t end = text.find('}');
    if (text[0] == '}' || end == std::string_view::npos || end == 1) {
      return Error{ErrorKind::kUsage, "a brace without its partner in '" + whole +
                                          "'; expected {name}, or {{ and }} for the braces "
                                          "themselves"};
    }
    CKPTVERIFY_TRY_VOID(name(std::string(text.substr(1, end - 1))));
    text.remove_prefix(end + 1);
  }
  return {};
}

std::size_t edit_distance(std::string_view first, std::string_view second) {
  std::vector<std::size_t> row(second.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= first.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= second.size(); ++j) {
      const std::size_t replaced = diagonal + (first[i - 1] == second[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

/// "step:07": the name, and the digits that its number has at least.
struct Placeholder {
  std::string name;
  std::size_t width = 0;
};

Result<Placeholder> placeholder_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return Placeholder{text};
  const std::string width = text.substr(colon + 1);
  const bool digits = width.size() == 2 && width[0] == '0' && width[1] >= '1' && width[1] <= '9';
  if (!digits) {
    return Error{ErrorKind::kUsage, "a width that cannot be read in {" + text +
                                        "}; expected one of 01 to 09, such as {step:07}"};
  }
  return Placeholder{text.substr(0, colon), static_cast<std::size_t>(width[1] - '0')};
}

}  // namespace

Result<std::vector<std::string>> placeholder_names(std::string_view text) {
  std::vector<std::string> names;
  CKPTVERIFY_TRY_VOID(scan(
      text, [](std::string_view) {},
      [&](const std::string& inside) -> Result<void> {
        CKPTVERIFY_TRY(const Placeholder placeholder, placeholder_of(inside));
        names.push_back(placeholder.name);
        return {};
      }));
  return names;
}

Result<std::string> fill_placeholders(std::string_view text, const PlaceholderValue& value) {
  std::string filled;
  CKPTVERIFY_TRY_VOID(scan(
      text, [&](std::string_view part) { filled += part; },
      [&](const std::string& inside) -> Result<void> {
        CKPTVERIFY_TRY(const auto placeholder, placeholder_of(inside));
        const std::optional<std::string> found = value(placeholder.name);
        if (!found) return Error{ErrorKind::kUsage, "unknown placeholder {" + inside + "}"};
        filled.append(placeholder.width - std::min(placeholder.width, found->size()), '0');
        filled += *found;
        return {};
      }));
  return filled;
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t least = word.size() / 2 + 1;  // half of it mistyped is no longer the same word
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace ckptverify
