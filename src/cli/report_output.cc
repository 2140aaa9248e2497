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

/// Written whole or not at all: a full disk must not leave half a report under its name.
Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path aside = path.string() + ".tmp";
  errno = 0;
  std::ofstream stream(aside, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  std::error_code error(stream ? 0 : (errno == 0 ? EIO : errno), std::generic_category());
  if (!error) std::filesystem::rename(aside, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(aside, ignored);
    return Error{ErrorKind::kUnreadable, "the report cannot be written: " + error.message(),
                 path.string()};
  }
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
  return write_file(directory / "report.html", report_html(report));
}

}  // namespace ckptverify::cli
