// Paths are renamed, sorted and merged. std::regex throws, and is met here alone.
#include "src/matching.h"

#include <algorithm>
#include <compare>
#include <regex>

namespace ckptverify {
namespace {

/// The path rules, compiled once.
class Renaming {
 public:
  static Result<Renaming> compile(const std::vector<PathRule>& rules) {
    Renaming renaming;
    for (const PathRule& rule : rules) {
      try {
        renaming.rules_.emplace_back(std::regex(rule.pattern), rule.replacement);
      } catch (const std::regex_error& error) {
        return Error{.kind = ErrorKind::kUsage,
                     .message = std::string("no regular expression; found ") + error.what() +
                                ", expected ECMAScript's syntax",
                     .subject = rule.pattern};
      }
    }
    return renaming;
  }

  Result<std::string> apply(std::string path) const {
    try {
      for (const auto& [pattern, replacement] : rules_) {
        path = std::regex_replace(path, pattern, replacement);
      }
    } catch (const std::regex_error& error) {
      return Error{.kind = ErrorKind::kUsage,
                   .message = std::string("a path rule gives up on this path; found ") +
                              error.what() + ", expected a simpler expression",
                   .subject = path};
    }
    return path;
  }

 private:
  std::vector<std::pair<std::regex, std::string>> rules_;
};

/// An entry under the name that it is matched by.
struct Named {
  std::string label;
  std::string path;
  const Entry* entry = nullptr;

  std::strong_ordering order(const Named& other) const {
    const auto by_label = label <=> other.label;
    return by_label != 0 ? by_label : path <=> other.path;
  }
};

Result<std::vector<Named>> named_entries(const Checkpoint& checkpoint, const Renaming& renaming) {
  std::vector<Named> named;
  for (const Entry& entry : checkpoint.entries) {
    CKPTVERIFY_TRY(std::string path, renaming.apply(std::string(relative_path(entry))));
    named.push_back({component_label(entry), std::move(path), &entry});
  }
  std::stable_sort(named.begin(), named.end(),
                   [](const Named& a, const Named& b) { return a.order(b) < 0; });
  return named;
}

Matching merge(const std::vector<Named>& first, const std::vector<Named>& second) {
  Matching matching;
  auto a = first.begin();
  auto b = second.begin();
  while (a != first.end() && b != second.end()) {
    const auto order = a->order(*b);
    if (order < 0) {
      matching.only_first.push_back((a++)->entry);
    } else if (order > 0) {
      matching.only_second.push_back((b++)->entry);
    } else {
      matching.both.emplace_back((a++)->entry, (b++)->entry);
    }
  }
  for (; a != first.end(); ++a) matching.only_first.push_back(a->entry);
  for (; b != second.end(); ++b) matching.only_second.push_back(b->entry);
  return matching;
}

}  // namespace

Result<Matching> match_entries(const Checkpoint& first, const Checkpoint& second,
                               const std::vector<PathRule>& rules) {
  CKPTVERIFY_TRY(const Renaming renaming, Renaming::compile(rules));
  CKPTVERIFY_TRY(const std::vector<Named> first_named, named_entries(first, renaming));
  CKPTVERIFY_TRY(const std::vector<Named> second_named, named_entries(second, renaming));
  return merge(first_named, second_named);
}

}  // namespace ckptverify
