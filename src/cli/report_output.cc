#include "src/cli/report_output.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "src/report/console.h"
#include "src/report/html.h"
#include "src/report/json.h"
#include "src/report/junit.h"
#include "src/report/markdown.h"

namespace ckptverify::cli {
namespace {

/// NAME="value" of a file such as /etc/os-release.
std::string os_release_value(const std::string& name) {
  std::ifstream stream("/etc/os-release");
  std::string line;
  while (std::getline(stream, line)) {
    if (line.rfind(name + "=", 0) != 0) continue;
    std::string value = line.substr(name.size() + 1);
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return "unknown";
}

/// The system's reason where there is one, when a stream is no longer good.
std::error_code code_of_stream(const std::ofstream& stream) {
  return {stream ? 0 : (errno == 0 ? EIO : errno), std::generic_category()};
}

Error not_written(const std::filesystem::path& path, const std::error_code& error) {
  return {ErrorKind::kUnreadable, "the report cannot be written: " + error.message(),
          path.string()};
}

/// Written whole or not at all: a full disk must not leave half a report under its name.
Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path aside = path.string() + ".tmp";
  errno = 0;
  std::ofstream stream(aside, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  std::error_code error = code_of_stream(stream);
  if (!error) std::filesystem::rename(aside, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(aside, ignored);
    return not_written(path, error);
  }
  return {};
}

/// /dev/stdout must not be renamed away.
Result<void> write_copy(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status))
    return write_file(path, text);
  errno = 0;
  std::ofstream stream(path, std::ios::binary | std::ios::app);
  stream << text;
  stream.close();
  error = code_of_stream(stream);
  if (error) return not_written(path, error);
  return {};
}

Result<void> check_copy(std::string_view option, const std::string& file) {
  if (file.empty()) return {};
  const std::filesystem::path path = std::filesystem::absolute(file);
  std::error_code error;
  const std::filesystem::path folder = path.parent_path();
  if (!std::filesystem::is_directory(folder, error))
    return Error{ErrorKind::kUsage, "no such folder: " + folder.string(), std::string(option)};
  if (!path.has_filename() || std::filesystem::is_directory(path, error))
    return Error{ErrorKind::kUsage, "found a folder, expected the name of a file: " + file,
                 std::string(option)};
  return {};
}

}  // namespace

std::map<std::string, std::string> tool_environment() {
  utsname system{};
  uname(&system);
  return {{"ckptverify", CKPTVERIFY_VERSION},
          {"operating system", os_release_value("PRETTY_NAME")},
          {"kernel", system.release},
          {"machine", system.machine},
          {"processors", std::to_string(std::thread::hardware_concurrency())}};
}

void print_report(const Report& report, Output output) {
  if (output == Output::kJson) {
    std::cout << report_json(report).text(2) << '\n';
    return;
  }
  const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  std::cout << report_console(report, colour ? Colour::kOn : Colour::kOff);
}

Result<void> write_report_files(const Report& report, const std::filesystem::path& directory) {
  CKPTVERIFY_TRY_VOID(write_file(directory / "report.json", report_json(report).text(2) + "\n"));
  CKPTVERIFY_TRY_VOID(write_file(directory / "report.html", report_html(report)));
  CKPTVERIFY_TRY_VOID(write_file(directory / "report.md", report_markdown(report)));
  return write_file(directory / "junit.xml", report_junit(report));
}

Result<void> check_report_copies(const ReportCopies& copies) {
  CKPTVERIFY_TRY_VOID(check_copy("--junit", copies.junit));
  return check_copy("--markdown", copies.markdown);
}

Result<void> write_report_copies(const Report& report, const ReportCopies& copies) {
  if (!copies.junit.empty()) CKPTVERIFY_TRY_VOID(write_copy(copies.junit, report_junit(report)));
  if (copies.markdown.empty()) return {};
  return write_copy(copies.markdown, report_markdown(report));
}

}  // namespace ckptverify::cli
