// What the tests of process trees share: a directory of their own, processes found by a mark in
// their environment, and supervised trainers.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "harness/supervisor.h"

namespace ckptverify::testing {

/// Removed at the end of a test that passed; kept, and named, after one that did not.
class Directory {
 public:
  Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::filesystem::path built(const std::string& name);

/// A mark that no other test has, as "NAME=value".
std::string new_mark();
/// Living processes that have the mark in their environment.
std::vector<pid_t> marked_processes(const std::string& mark);
/// Asks again until it is so, or 20 s have passed.
bool comes_true(const std::function<bool()>& condition);

/// The odd trainer with those arguments, its phase's files below `directory`.
SupervisorOptions odd_trainer(const std::filesystem::path& directory,
                              const std::vector<std::string>& arguments, const std::string& mark);
/// A shell script instead.
SupervisorOptions script(const std::filesystem::path& directory, const std::string& text,
                         const std::string& mark);

}  // namespace ckptverify::testing
