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

/// report.json, report.html, report.md and junit.xml, each written aside and renamed. An error says
/// which is missing and why.
Result<void> write_report_files(const Report& report, const std::filesystem::path& directory);

/// Further copies where a CI system looks for them; empty where none is asked for.
struct ReportCopies {
  std::string junit = {};
  std::string markdown = {};
};

/// Told before hours of training and not after: a folder that is not there, a folder as the file.
Result<void> check_report_copies(const ReportCopies& copies);

/// What is no file of its own (a pipe, a terminal, a link) is written in place.
Result<void> write_report_copies(const Report& report, const ReportCopies& copies);

}  // namespace ckptverify::cli
