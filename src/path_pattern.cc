// std::regex throws, and is met here alone.
#include "ckptverify/path_pattern.h"

#include <regex>
#include <utility>

namespace ckptverify {

struct PathPattern::Compiled {
  std::string text;
  std::regex regex;
};

namespace {

// std::regex takes stack for every character that it looks at. Parameters' names stay below a few
// hundred bytes; a longer one comes from a damaged or hostile file.
constexpr std::size_t kPathSizeMax = 4096;

Result<void> check_size(const std::string& path) {
  if (path.size() <= kPathSizeMax) return {};
  return Error{.kind = ErrorKind::kUnsupported,
               .message = "a path is too long for a pattern; found " + std::to_string(path.size()) +
                          " bytes, expected at most " + std::to_string(kPathSizeMax),
               .subject = path.substr(0, 64) + "..."};
}

Error gives_up(const std::string& pattern, const std::string& path, const std::regex_error& error) {
  return Error{.kind = ErrorKind::kUsage,
               .message = "the pattern " + pattern + " gives up on this path; found " +
                          error.what() + ", expected a simpler expression",
               .subject = path};
}

}  // namespace

Result<PathPattern> PathPattern::regex(const std::string& text) {
  try {
    return PathPattern(std::make_shared<const Compiled>(Compiled{text, std::regex(text)}));
  } catch (const std::regex_error& error) {
    return Error{.kind = ErrorKind::kUsage,
                 .message = std::string("no regular expression; found ") + error.what() +
                            ", expected ECMAScript's syntax",
                 .subject = text};
  }
}

Result<PathPattern> PathPattern::glob(const std::string& text) {
  std::string expression = "^";
  for (const char character : text) {
    if (character == '*') {
      expression += ".*";
    } else if (character == '?') {
      expression += '.';
    } else {
      if (std::string_view("\\^$.|+()[]{}").find(character) != std::string_view::npos) {
        expression += '\\';
      }
      expression += character;
    }
  }
  return regex(expression + "$");
}

Result<PathPattern> PathPattern::guess(const std::string& text) {
  bool is_glob = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '*' && text[i] != '?') continue;
    const bool repeats =
        i > 0 && std::string_view(".)]}").find(text[i - 1]) != std::string_view::npos;
    if (repeats) return regex(text);
    is_glob = true;
  }
  const bool has_syntax = text.find_first_of("\\^$|()[]{}+") != std::string::npos;
  return is_glob && !has_syntax ? glob(text) : regex(text);
}

Result<bool> PathPattern::found_in(const std::string& path) const {
  CKPTVERIFY_TRY_VOID(check_size(path));
  try {
    return std::regex_search(path, compiled_->regex);
  } catch (const std::regex_error& error) {
    return gives_up(compiled_->text, path, error);
  }
}

Result<std::string> PathPattern::replace(const std::string& path,
                                         const std::string& replacement) const {
  CKPTVERIFY_TRY_VOID(check_size(path));
  try {
    return std::regex_replace(path, compiled_->regex, replacement);
  } catch (const std::regex_error& error) {
    return gives_up(compiled_->text, path, error);
  }
}

Result<ComponentRule> component_rule(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorKind::kUsage, "found '" + text + "', expected REGEX=COMPONENT"};
  }
  const std::string name = text.substr(equals + 1);
  const std::optional<Component> component = component_named(name);
  if (!component) {
    std::string known;
    for (const Component each : components()) known += " " + std::string(component_name(each));
    return Error{ErrorKind::kUsage, "found '" + name + "', expected one of" + known};
  }
  ComponentRule rule{text.substr(0, equals), *component};
  CKPTVERIFY_TRY_VOID(PathPattern::regex(rule.pattern));
  return rule;
}

Result<std::uint64_t> map_components(Checkpoint& checkpoint,
                                     const std::vector<ComponentRule>& rules) {
  std::vector<std::pair<PathPattern, Component>> compiled;
  for (const ComponentRule& rule : rules) {
    CKPTVERIFY_TRY(PathPattern pattern, PathPattern::regex(rule.pattern));
    compiled.emplace_back(std::move(pattern), rule.component);
  }
  std::uint64_t count = 0;
  for (Entry& entry : checkpoint.entries) {
    for (const auto& [pattern, component] : compiled) {
      CKPTVERIFY_TRY(const bool found, pattern.found_in(entry.path));
      if (!found) continue;
      ++count;
      if (entry.component != component) {
        const std::size_t dot = entry.path.find('.');
        entry.component = component;
        entry.root_size = dot == std::string::npos ? 0 : dot + 1;
      }
      break;
    }
  }
  return count;
}

}  // namespace ckptverify
