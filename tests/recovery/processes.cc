#include "tests/recovery/processes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>

#include "harness/launch.h"

namespace ckptverify::testing {

namespace fs = std::filesystem;

Directory::Directory() {
  std::string pattern = (fs::temp_directory_path() / "ckptverify-XXXXXX").string();
  path_ = ::mkdtemp(pattern.data());
}

Directory::~Directory() {
  if (::testing::Test::HasFailure()) {
    std::cout << "kept: " << path_ << "\n";
    return;
  }
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path built(const std::string& name) {
  return fs::path(CKPTVERIFY_BUILD) / name;
}

std::string new_mark() {
  static std::atomic<int> count = 0;
  return "ODD_MARK=" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

std::vector<pid_t> marked_processes(const std::string& mark) {
  const std::string wanted = '\0' + mark + '\0';
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(entry.path() / "environ", std::ios::binary);
    const std::string text = '\0' + std::string(std::istreambuf_iterator<char>(stream), {});
    if (text.find(wanted) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

bool comes_true(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    (void)::poll(nullptr, 0, 2);
  }
  return true;
}

SupervisorOptions script(const fs::path& directory, const std::string& text,
                         const std::string& mark) {
  SupervisorOptions options;
  fs::create_directories(directory / "events");
  options.tool = built("guardian_host");
  options.command = {"/bin/sh", "-c", text};
  options.environment = inherited_environment({"CKPTVERIFY_"});
  options.environment.push_back(mark);
  options.working_directory = directory;
  options.log = directory / "log";
  options.events_directory = directory / "events";
  options.gate = directory / "gate";
  options.deadlines = {.start_s = 20, .step_s = 20, .restore_s = 20, .eval_s = 20, .kill_s = 20};
  return options;
}

SupervisorOptions odd_trainer(const fs::path& directory, const std::vector<std::string>& arguments,
                              const std::string& mark) {
  SupervisorOptions options = script(directory, "", mark);
  options.command = {built("odd_trainer").string()};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

}  // namespace ckptverify::testing
