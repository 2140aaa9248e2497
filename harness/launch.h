// Starts one program exactly as told: argument vector, environment, working directory, descriptors.
// The caller owns the process that results and waits for it itself, by pid and native wait status;
// nothing is waited for, and nothing is killed, behind its back.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ckptverify/result.h"

namespace ckptverify {

/// How a new process stands to the one that starts it.
enum class ProcessSession { kShared, kOwn };

struct Launch {
  std::vector<std::string> command;      // the first is the program, looked up in PATH of
                                         // `environment` when it has no '/'
  std::vector<std::string> environment;  // "NAME=value"; nothing else is passed on
  std::filesystem::path working_directory;
  int standard_input = -1;          // -1: /dev/null
  int standard_output = -1;         // -1: /dev/null
  int standard_error = -1;          // -1: /dev/null
  std::vector<int> inherited = {};  // kept open in the child under their own numbers
  ProcessSession session = ProcessSession::kShared;
  int parent_death_signal = 0;  // sent to the child when the starting thread ends; 0: none
};

/// The child has no blocked signals, default dispositions and no descriptors but those named.
Result<pid_t> launch(const Launch& launch);

/// This process's environment as "NAME=value", without the variables that begin with one of the
/// prefixes.
std::vector<std::string> inherited_environment(const std::vector<std::string>& without_prefixes);

}  // namespace ckptverify
