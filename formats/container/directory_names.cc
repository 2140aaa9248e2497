// Names only; no file is opened.
#include "formats/container/directory_names.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace ckptverify {
namespace {

constexpr std::string_view kDigits = "0123456789";

std::string_view digits_at(std::string_view text, std::size_t start) {
  const std::size_t end = std::min(text.find_first_not_of(kDigits, start), text.size());
  return text.substr(start, end - start);
}

std::string_view without_zeros(std::string_view digits) {
  const std::size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? digits.substr(digits.size()) : digits.substr(first);
}

}  // namespace

std::vector<std::string> top_files(const Source& directory) {
  std::vector<std::string> names;
  for (const std::string& member : directory.members())
    if (member.find('/') == std::string::npos) names.push_back(member);
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

std::vector<std::string> top_directories(const Source& directory) {
  std::set<std::string> found;
  for (const std::string& member : directory.members()) {
    const std::size_t slash = member.find('/');
    if (slash != std::string::npos) found.insert(member.substr(0, slash));
  }
  std::vector<std::string> names(found.begin(), found.end());
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

bool has_directory(const Source& directory, std::string_view name) {
  const std::string prefix = std::string(name) + "/";
  const auto& members = directory.members();
  const auto place = std::lower_bound(members.begin(), members.end(), prefix);
  return place != members.end() && place->starts_with(prefix);
}

std::optional<std::uint64_t> number_between(std::string_view name, std::string_view prefix,
                                            std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix))
    return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::string with_number(std::string name, std::string_view word, std::uint64_t number) {
  const std::size_t place = name.find(word);
  if (place == std::string::npos) return name;
  const std::size_t width = digits_at(name, place + word.size()).size();
  if (width == 0) return name;
  std::string digits = std::to_string(number);
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return name.replace(place + word.size(), width, digits);
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const std::string_view left = digits_at(a, i);
    const std::string_view right = digits_at(b, j);
    if (left.empty() || right.empty()) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
      continue;
    }
    const std::string_view x = without_zeros(left);
    const std::string_view y = without_zeros(right);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
    i += left.size();
    j += right.size();
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // "01" and "1" are equal as numbers and still two names
}

std::optional<ShardNumber> shard_number(std::string_view name, std::string_view prefix,
                                        std::string_view suffix) {
  constexpr std::string_view kOf = "-of-";
  const std::size_t of = name.find(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const auto index = number_between(name.substr(0, of), prefix, "");
  const auto count = number_between(name.substr(of + kOf.size()), "", suffix);
  if (!index || !count) return std::nullopt;
  return ShardNumber{.index = *index, .count = *count};
}

Holes holes_in(const std::vector<std::uint64_t>& sorted, std::uint64_t first, std::uint64_t end) {
  Holes holes{.count = end > first ? end - first : 0, .first = first};
  bool run = true;  // everything from `first` on has been there so far
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] < first || sorted[i] >= end || (i > 0 && sorted[i] == sorted[i - 1])) continue;
    --holes.count;
    run = run && sorted[i] == holes.first;
    if (run) ++holes.first;
  }
  return holes;
}

}  // namespace ckptverify
