// What the subcommands share: opening a checkpoint, exit codes, texts for people.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/finding.h"
#include "ckptverify/fingerprint.h"
#include "ckptverify/format.h"
#include "ckptverify/json.h"
#include "ckptverify/result.h"

namespace ckptverify::cli {

enum ExitCode : int {
  kExitPass = 0,
  kExitFail = 1,
  kExitInconclusive = 2,
  kExitUsage = 64,
  kExitNoInput = 66,
};

enum class Output { kText, kJson };

/// Prints `ckptverify: <error>` to standard error; the exit code that its kind has.
int report_error(const Error& error);

/// The exit code of a command that ended. An error is reported, under --json also as an object on
/// standard output: {"schema": "ckptverify.<command>/1", "error": {...}}.
int code_of(const Result<int>& result, std::string_view command, Output output);

int exit_code(Verdict verdict);

/// Opens a file or directory and reads it by the format that recognises it. Errors begin with the
/// path.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& path, Depth depth = Depth::kWhole);
/// The same of what has been opened.
Result<Checkpoint> read_checkpoint(const Source& source, Depth depth = Depth::kWhole);

/// The error with the checkpoint's path in front of the file or entry that it is about.
Error in_checkpoint(const std::filesystem::path& path, Error error);

/// Writes the value and a newline to standard output.
void print_json(const Json& json);

/// "1.5 MiB", "312 B".
std::string size_text(std::uint64_t size);

/// The text without characters that a terminal would obey: a checkpoint's names are not ours.
std::string plain_text(std::string_view text);

/// "[2, 3]".
std::string shape_text(const std::vector<std::uint64_t>& shape);

/// A value for JSON: integers beyond 64 bits and byte strings become strings.
Json value_json(const Value& value);

/// The running executable.
std::filesystem::path tool_path();

/// NAME=VALUE texts of --set as pairs.
using Settings = std::vector<std::pair<std::string, std::string>>;
Result<Settings> settings_of(const std::vector<std::string>& texts);

/// The path as it is from any directory.
std::string whole_path(const std::filesystem::path& path);

/// The command line as it can be pasted into a shell.
std::string shell_text(const std::vector<std::string>& arguments);

}  // namespace ckptverify::cli
