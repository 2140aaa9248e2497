#include "src/cli/command.h"

#include <array>
#include <cstdio>
#include <iostream>

#include "formats/formats.h"
#include "src/cli/collection_output.h"

namespace ckptverify::cli {

namespace {

int code_of_kind(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kUnreadable:
      return kExitNoInput;
    case ErrorKind::kMalformed:
      return kExitFail;
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

Json error_json(const Error& error) {
  Json json = Json::Object{{"kind", kind_name(error.kind)},
                           {"subject", error.subject},
                           {"message", error.message},
                           {"text", error.text()},
                           {"exit_code", code_of_kind(error.kind)}};
  if (error.offset) json.set("offset", *error.offset);
  if (error.cause) json.set("cause", error.cause->id());
  return json;
}

}  // namespace

int report_error(const Error& error) {
  std::cerr << "ckptverify: " << error.text() << '\n';
  return code_of_kind(error.kind);
}

int code_of(const Result<int>& result, std::string_view command, Output output) {
  if (result) return *result;
  if (output == Output::kJson) {
    print_json(Json::Object{{"schema", "ckptverify." + std::string(command) + "/1"},
                            {"error", error_json(result.error())}});
  }
  return report_error(result.error());
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
