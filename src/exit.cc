// Native wait statuses, decoded by hand: exit(9) and SIGKILL must never look alike.
#include "ckptverify/exit.h"

#include <sys/wait.h>

#include <csignal>

#include "ckptverify/result.h"

namespace ckptverify {

namespace {

const char* signal_name(int number) {
  switch (number) {
    case SIGHUP:
      return "HUP";
    case SIGINT:
      return "INT";
    case SIGQUIT:
      return "QUIT";
    case SIGILL:
      return "ILL";
    case SIGTRAP:
      return "TRAP";
    case SIGABRT:
      return "ABRT";
    case SIGBUS:
      return "BUS";
    case SIGFPE:
      return "FPE";
    case SIGKILL:
      return "KILL";
    case SIGUSR1:
      return "USR1";
    case SIGSEGV:
      return "SEGV";
    case SIGUSR2:
      return "USR2";
    case SIGPIPE:
      return "PIPE";
    case SIGALRM:
      return "ALRM";
    case SIGTERM:
      return "TERM";
    case SIGXCPU:
      return "XCPU";
    case SIGXFSZ:
      return "XFSZ";
    case SIGSYS:
      return "SYS";
    default:
      return nullptr;
  }
}

}  // namespace

std::string Exit::text() const {
  switch (kind) {
    case ExitKind::kExited:
      return "exit " + std::to_string(code);
    case ExitKind::kSignalled: {
      const char* name = signal_name(signal);
      std::string text = "signal " + std::to_string(signal);
      if (name != nullptr) text += std::string(" (") + name + ")";
      return author == ExitAuthor::kUs ? text + ", sent by us" : text;
    }
    case ExitKind::kTimedOut:
      return reason.empty() ? "deadline passed" : reason;
    case ExitKind::kNotStarted:
      return reason.empty() ? "not started" : "not started: " + reason;
  }
  return {};
}

Exit exit_from_wait_status(int status, ExitAuthor author) {
  // A process that left by itself was not ended by a signal of ours, whatever we sent it.
  if (WIFEXITED(status)) return Exit{.kind = ExitKind::kExited, .code = WEXITSTATUS(status)};
  CKPTVERIFY_ASSERT(WIFSIGNALED(status));
  return Exit{.kind = ExitKind::kSignalled, .signal = WTERMSIG(status), .author = author};
}

}  // namespace ckptverify
