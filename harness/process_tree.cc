// /proc/<pid>/task/<tid>/children where the kernel has it, the parent column of every
// /proc/<pid>/stat otherwise.

#include "harness/process_tree.h"

#include <signal.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <system_error>

namespace ckptverify {
namespace {

/// Rounds of SIGSTOP before a tree counts as frozen enough: a fork bomb must not hold us for ever.
constexpr int kFreezeRoundsMax = 64;

std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::optional<pid_t> number(std::string_view text) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \n");
    if (begin == std::string_view::npos) return all;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    all.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

/// The name in parentheses may hold anything, so the fields are counted from its last ')'.
std::optional<ProcessState> process_state(pid_t pid) {
  const std::string text = read_text("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = words(std::string_view(text).substr(name_end + 1));
  if (fields.size() < 2) return std::nullopt;
  const auto parent = number(fields[1]);
  if (!parent) return std::nullopt;
  return ProcessState{pid, *parent, fields[0].front()};
}

/// Nothing where the kernel was built without these files.
std::optional<std::vector<pid_t>> children_by_task(pid_t pid) {
  std::error_code error;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  std::vector<pid_t> children;
  bool any = false;
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    const std::filesystem::path file = task->path() / "children";
    std::error_code absent;
    if (!std::filesystem::exists(file, absent)) continue;
    any = true;
    const std::string text = read_text(file);
    for (const std::string_view word : words(text)) {
      if (const auto child = number(word)) children.push_back(*child);
    }
  }
  if (!any) return std::nullopt;
  return children;
}

std::vector<ProcessState> all_processes() {
  std::vector<ProcessState> all;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    if (const auto pid = number(entry->path().filename().native())) {
      if (const auto state = process_state(*pid)) all.push_back(*state);
    }
  }
  return all;
}

std::vector<ProcessState> descendants_by_scan(pid_t root) {
  const std::vector<ProcessState> all = all_processes();
  std::vector<ProcessState> found;
  std::vector<pid_t> parents = {root};
  for (std::size_t at = 0; at < parents.size(); ++at) {
    for (const ProcessState& process : all) {
      if (process.parent != parents[at]) continue;
      found.push_back(process);
      parents.push_back(process.pid);
    }
  }
  return found;
}

}  // namespace

std::vector<ProcessState> descendants(pid_t root) {
  std::vector<ProcessState> found;
  std::set<pid_t> seen = {root};
  std::vector<pid_t> parents = {root};
  for (std::size_t at = 0; at < parents.size(); ++at) {
    const auto children = children_by_task(parents[at]);
    if (!children && at == 0) return descendants_by_scan(root);
    if (!children) continue;  // gone meanwhile
    for (const pid_t child : *children) {
      if (!seen.insert(child).second) continue;
      if (const auto state = process_state(child)) found.push_back(*state);
      parents.push_back(child);
    }
  }
  return found;
}

std::set<std::int64_t> numbers_of(const std::vector<ProcessState>& processes) {
  std::set<std::int64_t> numbers;
  for (const ProcessState& process : processes) {
    if (process.ended()) continue;
    numbers.insert(process.pid);
    const std::string text = read_text("/proc/" + std::to_string(process.pid) + "/status");
    constexpr std::string_view kNames = "\nNSpid:";
    const std::size_t begin = text.find(kNames);
    if (begin == std::string::npos) continue;
    const std::size_t from = begin + kNames.size();
    std::string line = text.substr(from, text.find('\n', from) - from);
    std::replace(line.begin(), line.end(), '\t', ' ');
    for (const std::string_view word : words(line))
      if (const auto own = number(word)) numbers.insert(*own);
  }
  return numbers;
}

std::uint64_t freeze_descendants(pid_t root) {
  std::set<pid_t> stopped;
  for (int round = 0; round < kFreezeRoundsMax; ++round) {
    bool any_new = false;
    for (const ProcessState& process : descendants(root)) {
      if (process.ended() || !stopped.insert(process.pid).second) continue;
      any_new = true;
      (void)::kill(process.pid, SIGSTOP);
    }
    if (!any_new) break;
  }
  return stopped.size();
}

}  // namespace ckptverify
