#include "harness/program.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace ckptverify {
namespace {

bool can_be_executed(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

/// The PATH that the plan's processes have.
std::string search_path(const Plan& plan) {
  if (const auto own = plan.environment.find("PATH"); own != plan.environment.end()) {
    return own->second;
  }
  const char* inherited = std::getenv("PATH");
  return inherited == nullptr ? "" : inherited;
}

bool is_whole_command(const std::string& program) {
  std::error_code ignored;
  return program.find_first_of(" \t") != std::string::npos &&
         !std::filesystem::exists(program, ignored);
}

}  // namespace

Result<std::filesystem::path> find_program(const std::string& program,
                                           std::string_view search_path) {
  if (program.find('/') != std::string::npos) return std::filesystem::path(program);
  std::string_view rest = search_path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::filesystem::path candidate = std::filesystem::path(rest.substr(0, end)) / program;
    if (can_be_executed(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Error{ErrorKind::kUnreadable, "no such program in PATH", program};
}

Result<void> check_program(const Plan& plan, const CommandTemplate& command) {
  const auto words = expand(plan, {command.front()}, {});
  const std::string& program = words ? words->front() : command.front();
  if (is_whole_command(program)) {
    return Error{ErrorKind::kUsage,
                 "no such program, and it has spaces: a command is a list of its words, such as "
                 "[\"python3\", \"{plan_dir}/train.py\"]",
                 program};
  }
  if (!words) return {};  // only its phase knows it
  CKPTVERIFY_TRY(const std::filesystem::path file, find_program(program, search_path(plan)));
  if (file.is_relative()) {
    return Error{ErrorKind::kUsage,
                 "relative, and every phase starts in a directory of its own: begin it with "
                 "{plan_dir}",
                 program};
  }
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return Error{ErrorKind::kUnreadable, "no such program", program};
  }
  if (!can_be_executed(file)) {
    return Error{ErrorKind::kUnreadable, "is no file that may be executed", program};
  }
  return {};
}

Result<void> check_programs(const Plan& plan) {
  struct Named {
    const char* name;
    const CommandTemplate& command;
  };
  for (const Named& named :
       {Named{"train", plan.train}, Named{"resume", plan.resume}, Named{"eval", plan.eval}}) {
    if (named.command.empty()) continue;
    if (auto checked = check_program(plan, named.command); !checked) {
      Error error = std::move(checked).error();
      error.subject = plan.file.string() + ": " + named.name + ": " + error.subject;
      return error;
    }
  }
  return {};
}

}  // namespace ckptverify
