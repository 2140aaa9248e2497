// Where a report goes: standard output for people or programs, files in an output directory.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "ckptverify/report.h"
#include "src/cli/command.h"

namespace ckptverify::cli {

/// Operating system, processors, versions: what a reader needs to repeat a result.
std::map<std::string, std::string> tool_environment();

/// As text (coloured on a terminal), or as JSON.
void print_report(const Report& report, Output output);

/// report.json and report.html, each written aside and renamed. An error says which is missing and
/// why.
Result<void> write_report_files(const Report& report, const std::filesystem::path& directory);

}  // namespace ckptverify::cli
