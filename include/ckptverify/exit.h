// How a process ended: exactly one of four, decoded from the native wait status, and whether we did
// it.
#pragma once

#include <string>

namespace ckptverify {

enum class ExitKind { kExited, kSignalled, kTimedOut, kNotStarted };
enum class ExitAuthor { kItself, kUs };

struct Exit {
  ExitKind kind = ExitKind::kNotStarted;
  int code = 0;                             // for kExited
  int signal = 0;                           // for kSignalled
  ExitAuthor author = ExitAuthor::kItself;  // kUs: the signal or the deadline was ours
  std::string reason = {};                  // for kNotStarted and kTimedOut

  /// "exit 0", "signal 9 (KILL), sent by us", "deadline of 60 s at the first step", ...
  std::string text() const;
};

/// From waitpid()'s status, which must be of a process that has ended.
Exit exit_from_wait_status(int status, ExitAuthor author);

}  // namespace ckptverify
