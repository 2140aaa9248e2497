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
int report_error(const Error& error, ExitCode malformed = kExitFail);

/// The exit code of a command that ended. An error is reported, under --json also as an object on
/// standard output: {"schema": "ckptverify.<command>/1", "error": {...}}. `malformed` is the code
/// where an input is malformed: 1, unless that has another meaning for the command.
int code_of(const Result<int>& result, std::string_view command, Output output,
            ExitCode malformed = kExitFail);

int exit_code(Verdict verdict);

/// Opens a file or directory and reads it by the format that recognises it. Errors begin with the
/// path.
Result<Checkpoint> read_checkpoint(const std::filesystem::path& path, Depth depth = Depth::kWhole);
/// The same of what has been opened.
Result<Checkpoint> read_checkpoint(const Source& source, Depth depth = Depth::kWhole);

/// The error with the checkpoint's path in front of the file or entry that it is about.
Error in_checkpoint(const std::filesystem::path& path, Error error);

/// What wrong checksums are for who reads bytes: a line each, an array of texts, and the exit code
/// of a command that read the checkpoint.
void print_damaged(const std::vector<Finding>& damaged);
Json damaged_json(const std::vector<Finding>& damaged);
ExitCode code_of_reading(const Checkpoint& checkpoint, const std::vector<Finding>& damaged);

/// Writes the value and a newline to standard output.
void print_json(const Json& json);

/// "1.5 MiB", "312 B".
std::string size_text(std::uint64_t size);

/// The text without characters that a terminal would obey: a checkpoint's names are not ours.
std::string plain_text(std::string_view text);

// Text for people fits a screen of 100 columns.
inline constexpr std::size_t kScreenWidth = 100;

/// A text's beginning where it is longer than a few words; --json has it whole.
std::string shortened(std::string text);
/// A path's begin and end where it is longer than a line.
std::string shortened_path(const std::string& path);
/// Phrases in lines that fit the screen, each line indented and ended.
std::string joined_lines(const std::vector<std::string>& phrases, std::string_view separator,
                         std::size_t indent);

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
