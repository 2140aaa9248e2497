// The processes below one process, found through /proc by parentage alone, and signals to all of
// them. Only true of a tree that is frozen or dead: callers repeat until the kernel agrees.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

namespace ckptverify {

struct ProcessState {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';  // as /proc/<pid>/stat has it: 'R', 'S', 'T', 'Z', ...
  bool ended() const { return state == 'Z' || state == 'X'; }
};

/// Every process below `root`, parents before their children, without `root` itself.
std::vector<ProcessState> descendants(pid_t root);

/// The numbers that those processes have, in our namespace of processes and in their own.
std::set<std::int64_t> numbers_of(const std::vector<ProcessState>& processes);

/// Sends SIGSTOP below `root` until nothing new appears; the number of processes that run no more.
std::uint64_t freeze_descendants(pid_t root);

}  // namespace ckptverify
