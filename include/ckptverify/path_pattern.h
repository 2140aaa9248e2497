// Patterns over paths: regular expressions of ECMAScript's syntax, and globs. The exceptions of the
// standard library's regular expressions end here.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"

namespace ckptverify {

class PathPattern {
 public:
  /// An error of kind kUsage where the text is no regular expression.
  static Result<PathPattern> regex(const std::string& text);
  /// Of the whole path: '*' stands for any text, '?' for one character, [abc], [a-z] and [!a] for
  /// one of a class, all else for itself.
  static Result<PathPattern> glob(const std::string& text);
  /// What people mean by either: a glob where '*' or '?' follows no expression that it could
  /// repeat, or where a class is negated by '!'.
  static Result<PathPattern> guess(const std::string& text);

  /// Somewhere in the path. An error where the expression gives up on this path, or tries for
  /// too long.
  Result<bool> found_in(const std::string& path) const;
  /// Every place that matches becomes the replacement ($1 is the first group).
  Result<std::string> replace(const std::string& path, const std::string& replacement) const;

 private:
  struct Compiled;
  explicit PathPattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

/// Says what entries are for where a layout's own names do not: a regular expression over whole
/// paths. The first part of a path that a rule matches is its component's root.
struct ComponentRule {
  std::string pattern;
  Component component = Component::kOther;
};

/// "REGEX=COMPONENT"; the last '=' parts them, since an expression may hold one. An error of kind
/// kUsage where it is no such text.
Result<ComponentRule> component_rule(const std::string& text);

/// The first rule that matches decides. The number of entries that a rule named.
Result<std::uint64_t> map_components(Checkpoint& checkpoint,
                                     const std::vector<ComponentRule>& rules);

}  // namespace ckptverify
