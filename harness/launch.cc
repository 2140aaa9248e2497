// Boost.Process v2 does fork and exec and closes what is not to be inherited. What it has no word
// for (session, death signal, signal mask, descriptors by number) is done by an initializer of ours
// between the two, where only async-signal-safe calls are made.

#include "harness/launch.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>

// With std::filesystem, Process v2 of 1.81 needs optional.hpp and does not include it.
#define BOOST_PROCESS_USE_STD_FS 1
#include <boost/asio/io_context.hpp>
#include <boost/optional.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>

#include "harness/program.h"

namespace ckptverify {
namespace {

namespace process = boost::process::v2;

Error cannot_start(const std::string& program, int error) {
  return Error{ErrorKind::kUnreadable,
               "cannot be started: " + std::generic_category().message(error), program};
}

std::string_view variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& line : environment) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == '=') {
      return std::string_view(line).substr(name.size() + 1);
    }
  }
  return {};
}

/// Runs in the child between fork and exec.
struct Setup {
  const Launch* launch;
  pid_t parent;

  static bool place(int descriptor, int target) {
    if (descriptor < 0) descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return false;
    if (descriptor == target) return ::fcntl(target, F_SETFD, 0) == 0;
    return ::dup2(descriptor, target) >= 0;
  }

  bool arrange() const {
    if (launch->session == ProcessSession::kOwn && ::setsid() < 0) return false;
    if (launch->parent_death_signal != 0) {
      const auto signal = static_cast<unsigned long>(launch->parent_death_signal);
      if (::prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0) return false;
      if (::getppid() != parent) return (errno = ESRCH, false);  // it died before the call
    }
    if (!launch->working_directory.empty() && ::chdir(launch->working_directory.c_str()) != 0) {
      return false;
    }
    // Copies above the range first, so that placing one does not overwrite another.
    int sources[3] = {launch->standard_input, launch->standard_output, launch->standard_error};
    for (int& source : sources) {
      if (source >= 0 && (source = ::fcntl(source, F_DUPFD_CLOEXEC, 3)) < 0) return false;
    }
    for (int target = 0; target < 3; ++target) {
      if (!place(sources[target], target)) return false;
    }
    // The launcher's own sweep (1.81) misses what lies between two descriptors that it keeps.
    if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
    for (const int descriptor : launch->inherited) {
      if (::fcntl(descriptor, F_SETFD, 0) != 0) return false;
    }
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGXFSZ}) {
      ::signal(signal, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    return ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
  }

  template <class Launcher>
  process::error_code on_exec_setup(Launcher&, const std::filesystem::path&,
                                    const char* const*&) const {
    if (arrange()) return {};
    return process::error_code(errno, process::system_category());
  }

  template <class Launcher>
  void on_exec_error(Launcher&, const std::filesystem::path&, const char* const*&,
                     const process::error_code&) const {
    ::_exit(127);  // before the launcher's exit() would flush our buffers a second time
  }
};

Result<pid_t> start(const Launch& launch, const std::filesystem::path& program) {
  std::vector<const char*> environment;
  environment.reserve(launch.environment.size() + 1);
  for (const std::string& line : launch.environment) environment.push_back(line.c_str());
  environment.push_back(nullptr);

  boost::asio::io_context context;
  process::posix::default_launcher launcher;
  launcher.env = environment.data();
  for (const int descriptor : launch.inherited) launcher.fd_whitelist.push_back(descriptor);
  process::error_code error;
  const std::vector<std::string> arguments(launch.command.begin() + 1, launch.command.end());
  Setup setup{&launch, ::getpid()};
  auto child = launcher(context.get_executor(), error, program, arguments, setup);
  if (error) {
    // The launcher leaves the child that could not exec() unreaped.
    if (launcher.pid > 0) {
      while (::waitpid(launcher.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    return cannot_start(launch.command.front(), error.value());
  }
  const pid_t pid = launcher.pid;
  (void)child.detach();
  return pid;
}

}  // namespace

Result<pid_t> launch(const Launch& launch) {
  CKPTVERIFY_ASSERT(!launch.command.empty());
  CKPTVERIFY_TRY(const std::filesystem::path program,
                 find_program(launch.command.front(), variable(launch.environment, "PATH")));
  try {
    return start(launch, program);
  } catch (const std::exception& exception) {
    return Error{ErrorKind::kUnreadable, std::string("cannot be started: ") + exception.what(),
                 launch.command.front()};
  }
}

std::vector<std::string> inherited_environment(const std::vector<std::string>& without_prefixes) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text = *line;
    if (std::none_of(without_prefixes.begin(), without_prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); })) {
      lines.emplace_back(text);
    }
  }
  return lines;
}

}  // namespace ckptverify
