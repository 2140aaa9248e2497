// std::regex throws, and is met here alone. It also tries every way in which an expression may
// match, of which there can be more than a lifetime has seconds: it walks over characters that
// count.
#include "ckptverify/path_pattern.h"

#include <cstdint>
#include <iterator>
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

// Characters looked at on one path. Names of a hundred characters take some thousands, with several
// ".*" some hundred thousands; a tenth of a second is enough for an answer.
constexpr std::uint64_t kStepsMax = 1'000'000;

struct TooManySteps {};

/// A character of a path that takes a step from what is left whenever it is looked at.
class Step {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Step() = default;
  Step(const char* at, std::uint64_t& left) : at_(at), left_(&left) {}
  reference operator*() const {
    take();
    return *at_;
  }
  Step& operator++() {
    ++at_;
    return *this;
  }
  Step& operator--() {
    --at_;
    return *this;
  }
  Step operator++(int) {
    Step before = *this;
    ++at_;
    return before;
  }
  Step operator--(int) {
    Step before = *this;
    --at_;
    return before;
  }
  friend bool operator==(const Step& a, const Step& b) {
    a.take();
    return a.at_ == b.at_;
  }

 private:
  void take() const {
    if (left_ != nullptr && (*left_)-- == 0) throw TooManySteps();
  }
  const char* at_ = nullptr;
  std::uint64_t* left_ = nullptr;
};

Error too_slow(const std::string& pattern, const std::string& path) {
  return Error{.kind = ErrorKind::kUsage,
               .message = "the pattern " + pattern +
                          " takes too long on this path; found more than " +
                          std::to_string(kStepsMax) + " steps, expected a simpler expression",
               .subject = path};
}

Error gives_up(const std::string& pattern, const std::string& path, const std::regex_error& error) {
  return Error{.kind = ErrorKind::kUsage,
               .message = "the pattern " + pattern + " gives up on this path; found " +
                          error.what() + ", expected a simpler expression",
               .subject = path};
}

/// The ']' of a glob's class that begins here, "[abc]" or "[!a-z]"; npos where none does.
std::size_t class_end(const std::string& text, std::size_t start) {
  if (text[start] != '[') return std::string::npos;
  const std::size_t first = start + (text.substr(start + 1, 1) == "!" ? 2 : 1);
  return text.find(']', first + 1);  // one that stands first is of the class
}

std::string escaped(char character, std::string_view special) {
  const bool escape = special.find(character) != std::string_view::npos;
  return (escape ? "\\" : "") + std::string(1, character);
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
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end = class_end(text, i);
    if (text[i] == '*') {
      expression += ".*";
    } else if (text[i] == '?') {
      expression += '.';
    } else if (end != std::string::npos) {
      const bool negated = text[i + 1] == '!';
      expression += negated ? "[^" : "[";
      for (std::size_t at = i + (negated ? 2 : 1); at < end; ++at)
        expression += escaped(text[at], "\\[]^");
      expression += ']';
      i = end;
    } else {
      expression += escaped(text[i], "\\^$.|+()[]{}");
    }
  }
  return regex(expression + "$");
}

Result<PathPattern> PathPattern::guess(const std::string& text) {
  // No expression begins so, or has such a class.
  const bool certain =
      text.starts_with('*') || text.starts_with('?') || text.find("[!") != std::string::npos;
  bool is_glob = certain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '*' && text[i] != '?') continue;
    const bool repeats =
        i > 0 && std::string_view(".)]}").find(text[i - 1]) != std::string_view::npos;
    if (repeats && !certain) return regex(text);
    is_glob = true;
  }
  const bool has_syntax = text.find_first_of("\\^$|(){}+") != std::string::npos;
  return is_glob && !has_syntax ? glob(text) : regex(text);
}

Result<bool> PathPattern::found_in(const std::string& path) const {
  CKPTVERIFY_TRY_VOID(check_size(path));
  std::uint64_t left = kStepsMax;
  try {
    return std::regex_search(Step(path.data(), left), Step(path.data() + path.size(), left),
                             compiled_->regex);
  } catch (const std::regex_error& error) {
    return gives_up(compiled_->text, path, error);
  } catch (const TooManySteps&) {
    return too_slow(compiled_->text, path);
  }
}

Result<std::string> PathPattern::replace(const std::string& path,
                                         const std::string& replacement) const {
  CKPTVERIFY_TRY_VOID(check_size(path));
  std::uint64_t left = kStepsMax;
  std::string replaced;
  try {
    std::regex_replace(std::back_inserter(replaced), Step(path.data(), left),
                       Step(path.data() + path.size(), left), compiled_->regex, replacement);
    return replaced;
  } catch (const std::regex_error& error) {
    return gives_up(compiled_->text, path, error);
  } catch (const TooManySteps&) {
    return too_slow(compiled_->text, path);
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
