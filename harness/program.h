// Where the program of a command is: at an absolute path, or by its name in PATH.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ckptverify/plan.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// As execvp() looks in `search_path`, the value of a PATH. A program with a '/' is itself.
Result<std::filesystem::path> find_program(const std::string& program,
                                           std::string_view search_path);

/// Why no phase could start this command, before any is started: its program is relative (phases
/// start in directories of their own; wrong usage), is not there, or may not be executed. A program
/// that a phase's own placeholder names is only known then, and passes.
Result<void> check_program(const Plan& plan, const CommandTemplate& command);

/// The same of all commands of the plan; the error names the first that cannot be started.
Result<void> check_programs(const Plan& plan);

}  // namespace ckptverify
