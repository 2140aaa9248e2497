// A TOML file that a person wrote, read strictly: typed readers of its keys, and the first mistake
// with its line and column. After a mistake the readers return nothing of worth; who reads on asks
// error() at the end. The only pair that includes toml++; harness/plan.cc knows the keys.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/result.h"

namespace ckptverify {

class TomlFile {
 public:
  static Result<TomlFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const toml::table& table() const { return table_; }
  const std::optional<Error>& error() const { return error_; }

  /// Keeps the first mistake. A region without a line is about the whole file.
  void fail(const toml::source_region& where, const std::string& message);
  void fail(const toml::node& node, const std::string& message) { fail(node.source(), message); }

  /// Every other key is a mistake, which is told the nearest known one.
  void allow(const toml::table& table, const std::vector<std::string>& known);
  /// Null and a mistake where the key is missing.
  const toml::node* require(const toml::table& table, const std::string& key);
  /// Null where the key is missing; null and a mistake where it is no table.
  const toml::table* section(const toml::table& table, const std::string& key);

  std::string text(const toml::node& node, const std::string& name);
  std::uint64_t count(const toml::node& node, const std::string& name);
  double amount(const toml::node& node, const std::string& name);
  std::vector<std::string> texts(const toml::node& node, const std::string& name);

 private:
  TomlFile(std::filesystem::path path, toml::table table)
      : path_(std::move(path)), table_(std::move(table)) {}

  std::filesystem::path path_;
  toml::table table_;
  std::optional<Error> error_;
};

/// What a person wrote there, by its type and, where it is short, its value.
std::string found_text(const toml::node& node);

std::string in_quotes(std::string_view text);

/// "a, b, c"
std::string join(const std::vector<std::string>& words);

}  // namespace ckptverify
