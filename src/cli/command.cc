#include "src/cli/command.h"

#include <array>
#include <cstdio>
#include <iostream>

#include "formats/formats.h"
#include "src/cli/collection_output.h"

namespace ckptverify::cli {

namespace {

int code_of_kind(ErrorKind kind, ExitCode malformed) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kUnreadable:
      return kExitNoInput;
    case ErrorKind::kMalformed:
      return malformed;
    case ErrorKind::kUnsupported:
      return kExitInconclusive;
  }
  CKPTVERIFY_ASSERT(false);
}

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kUnreadable:
      return "unreadable";
    case ErrorKind::kMalformed:
      return "malformed";
    case ErrorKind::kUnsupported:
      return "unsupported";
  }
  CKPTVERIFY_ASSERT(false);
}

Json error_json(const Error& error, ExitCode malformed) {
  Json json = Json::Object{{"kind", kind_name(error.kind)},
                           {"subject", error.subject},
                           {"message", error.message},
                           {"text", error.text()},
                           {"exit_code", code_of_kind(error.kind, malformed)}};
  if (error.offset) json.set("offset", *error.offset);
  if (error.cause) json.set("cause", error.cause->id());
  return json;
}

}  // namespace

int report_error(const Error& error, ExitCode malformed) {
  std::cerr << "ckptverify: " << error.text() << '\n';
  return code_of_kind(error.kind, malformed);
}

int code_of(const Result<int>& result, std::string_view command, Output output,
            ExitCode malformed) {
  if (result) return *result;
  if (output == Output::kJson) {
    print_json(Json::Object{{"schema", "ckptverify." + std::string(command) + "/1"},
                            {"error", error_json(result.error(), malformed)}});
  }
  return report_error(result.error(), malformed);
}

int exit_code(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return kExitPass;
    case Verdict::kFail:
      return kExitFail;
    case Verdict::kInconclusive:
      return kExitInconclusive;
  }
  CKPTVERIFY_ASSERT(false);
}

Error in_checkpoint(const std::filesystem::path& path, Error error) {
  const std::string name = path.string();
  if (error.subject.empty()) {
    error.subject = name;
  } else if (!error.subject.starts_with(name)) {
    error.subject = name + ": " + error.subject;
  }
  return error;
}

Result<Checkpoint> read_checkpoint(const std::filesystem::path& path, Depth depth) {
  CKPTVERIFY_TRY(const Source source, Source::open(path));
  return read_checkpoint(source, depth);
}

Result<Checkpoint> read_checkpoint(const Source& source, Depth depth) {
  CKPTVERIFY_TRY_VOID(refuse_collection(source));
  auto checkpoint = formats().at(depth).read(source);
  if (!checkpoint) return in_checkpoint(source.name(), std::move(checkpoint).error());
  return checkpoint;
}

void print_damaged(const std::vector<Finding>& damaged) {
  for (const Finding& finding : damaged)
    std::cout << "damaged: " << plain_text(finding.message) << '\n';
}

Json damaged_json(const std::vector<Finding>& damaged) {
  Json::Array texts;
  for (const Finding& finding : damaged) texts.push_back(finding.message);
  return texts;
}

ExitCode code_of_reading(const Checkpoint& checkpoint, const std::vector<Finding>& damaged) {
  if (!damaged.empty()) return kExitFail;
  return checkpoint.uninterpreted.empty() ? kExitPass : kExitInconclusive;
}

void print_json(const Json& json) {
  std::cout << json.text(2) << '\n';
}

std::string size_text(std::uint64_t size) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (size < 1024) return std::to_string(size) + " B";
  auto value = static_cast<double>(size);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string plain_text(std::string_view text) {
  std::string plain;
  for (const char character : text) {
    const auto code = static_cast<unsigned char>(character);
    if (code >= 0x20 && code != 0x7f) {
      plain += character;
      continue;
    }
    std::array<char, 8> escape{};
    std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(code));
    plain += escape.data();
  }
  return plain;
}

namespace {

// A value longer than this says no more by being read whole.
constexpr std::size_t kValueShownMax = 60;
// Of a path too long for a line, the begin and the end, which tell parameters apart.
constexpr std::size_t kPathShownMax = kScreenWidth - 6;
constexpr std::size_t kPathEndShown = 30;

/// The position, or one before it that is no byte inside of a UTF-8 character.
std::size_t character_start(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U)
    --at;
  return at;
}

}  // namespace

std::string shortened(std::string text) {
  if (text.size() <= kValueShownMax) return text;
  return text.substr(0, character_start(text, kValueShownMax)) + "... (" +
         std::to_string(text.size()) + " characters)";
}

std::string shortened_path(const std::string& path) {
  if (path.size() <= kPathShownMax) return path;
  const std::string size = "...(" + std::to_string(path.size()) + " characters)...";
  const std::size_t begin = character_start(path, kPathShownMax - kPathEndShown - size.size());
  return path.substr(0, begin) + size +
         path.substr(character_start(path, path.size() - kPathEndShown));
}

std::string joined_lines(const std::vector<std::string>& phrases, std::string_view separator,
                         std::size_t indent) {
  std::string text;
  std::string line;
  for (const std::string& phrase : phrases) {
    if (!line.empty() && indent + line.size() + separator.size() + phrase.size() > kScreenWidth) {
      text += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : std::string(separator)) + phrase;
  }
  return line.empty() ? text : text + std::string(indent, ' ') + line + "\n";
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

Json value_json(const Value& value) {
  struct Visitor {
    const Value& whole;
    Json operator()(Null) const { return {}; }
    Json operator()(bool truth) const { return truth; }
    Json operator()(std::int64_t number) const { return number; }
    Json operator()(const BigInteger&) const { return value_text(whole); }
    Json operator()(double number) const { return number; }
    Json operator()(const std::string& text) const { return text; }
    Json operator()(const ByteString&) const { return value_text(whole); }
    Json operator()(EmptyList) const { return Json::Array{}; }
    Json operator()(EmptyMap) const { return Json::Object{}; }
  };
  return std::visit(Visitor{value}, value);
}

std::filesystem::path tool_path() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  CKPTVERIFY_ASSERT(!error);
  return path;
}

Result<Settings> settings_of(const std::vector<std::string>& texts) {
  Settings settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorKind::kUsage, "found '" + text + "', expected NAME=VALUE", "--set"};
    }
    settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return settings;
}

std::string whole_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  return error ? path.string() : whole.lexically_normal().string();
}

std::string shell_text(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  std::string text;
  for (const std::string& argument : arguments) {
    if (!text.empty()) text += ' ';
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
      text += argument;
      continue;
    }
    text += '\'';
    for (const char character : argument) {
      if (character == '\'') {
        text += "'\\''";
      } else {
        text += character;
      }
    }
    text += '\'';
  }
  return text;
}

}  // namespace ckptverify::cli
