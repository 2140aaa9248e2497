#include "harness/toml_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "harness/placeholders.h"

namespace ckptverify {
namespace {

constexpr std::size_t kFileBytesMax = 1024 * 1024;  // a person wrote it

Result<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code error;
  if (!stream || !std::filesystem::is_regular_file(file, error)) {
    return Error{ErrorKind::kUnreadable, "is no file that can be opened; expected a plan",
                 file.empty() ? "''" : file.string()};
  }
  std::string text(kFileBytesMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kFileBytesMax) {
    return Error{
        ErrorKind::kUsage,
        "too large for a plan; expected at most " + std::to_string(kFileBytesMax) + " bytes",
        file.string()};
  }
  return text;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// What a person wrote there, by its type and, where it is short, its value.
std::string found_text(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  if (const auto* text = node.as_string()) return "the string " + in_quotes(text->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) {
    std::ostringstream stream;
    stream << number->get();
    return "the number " + stream.str();
  }
  return "a date or time";
}

Result<TomlFile> TomlFile::open(const std::filesystem::path& path) {
  CKPTVERIFY_TRY(const std::string text, read_text(path));
  try {
    return TomlFile(path, toml::parse(text));
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    return Error{
        ErrorKind::kUsage, std::string(error.description()),
        path.string() + ":" + std::to_string(where.line) + ":" + std::to_string(where.column)};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kUsage, error.what(), path.string()};
  }
}

void TomlFile::fail(const toml::source_region& where, const std::string& message) {
  if (error_) return;
  std::string subject = path_.string();
  if (where.begin.line != 0) {
    subject += ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
  }
  error_ = Error{ErrorKind::kUsage, message, subject};
}

void TomlFile::allow(const toml::table& table, const std::vector<std::string>& known) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_word(name, known);
    fail(key.source(), "unknown key " + in_quotes(name) + "; expected " +
                           (nearest.empty() ? "one of " + join(known) : in_quotes(nearest)));
  }
}

const toml::node* TomlFile::require(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) fail(table, "found no key " + in_quotes(key) + " here; it is needed");
  return node;
}

const toml::table* TomlFile::section(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) {
    fail(*node, in_quotes(key) + " must be a table; found " + found_text(*node));
  }
  return node->as_table();
}

std::string TomlFile::text(const toml::node& node, const std::string& name) {
  const auto value = node.value_exact<std::string>();
  if (!value) fail(node, in_quotes(name) + " must be a string; found " + found_text(node));
  if (value && value->find('\0') != std::string::npos) {
    fail(node, in_quotes(name) + " must not hold a zero byte, which ends a process's argument");
  }
  return value.value_or("");
}

std::uint64_t TomlFile::count(const toml::node& node, const std::string& name) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0) {
    fail(node, in_quotes(name) + " must be an integer of 0 or more; found " + found_text(node));
  }
  return value ? static_cast<std::uint64_t>(*value) : 0;
}

double TomlFile::amount(const toml::node& node, const std::string& name) {
  const auto value = node.value<double>();
  if (!node.is_number() || !value || !std::isfinite(*value) || *value < 0) {
    fail(node, in_quotes(name) + " must be a number of 0 or more; found " + found_text(node));
    return 0;
  }
  return *value;
}

std::vector<std::string> TomlFile::texts(const toml::node& node, const std::string& name) {
  std::vector<std::string> all;
  const toml::array* array = node.as_array();
  if (array == nullptr) {
    fail(node, in_quotes(name) + " must be an array of strings; found " + found_text(node));
    return all;
  }
  for (const toml::node& item : *array) all.push_back(text(item, name));
  return all;
}

}  // namespace ckptverify
