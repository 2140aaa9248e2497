// One loop over two descriptors: orders and signals. Killing is freeze, kill, reap, look again,
// until waitpid() answers that there are no children.

#include "harness/guardian.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch.h"
#include "harness/process_tree.h"

namespace ckptverify {
namespace {

/// How long to wait for the next SIGCHLD before looking at the tree again.
constexpr int kLookAgain_ms = 10;
/// Stragglers named one by one; more are only counted, so that reports never fill the pipe.
constexpr std::uint64_t kStragglersNamedMax = 256;
/// An order is one word; more than this without an end of line is no order.
constexpr std::size_t kOrderBytesMax = 256;

class Guardian {
 public:
  int run(const std::vector<std::string>& command);

 private:
  bool prepare();
  bool start(const std::vector<std::string>& command);
  void serve();
  bool take_orders();  // false: kill
  void reap();
  void stop_tree();
  void continue_tree();
  void kill_tree();
  void wait_for_signal(int timeout_ms);
  void report(const std::string& line);

  int signals_ = -1;
  pid_t main_ = -1;
  bool childless_ = false;
  bool kill_signalled_ = false;
  std::uint64_t reaped_ = 0;
  std::set<pid_t> killed_;
  std::string orders_;
};

void Guardian::report(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody listens any more; the end of orders says the same
    written += static_cast<std::size_t>(count);
  }
}

bool Guardian::prepare() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return false;
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) return false;
  return ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL) == 0;
}

bool Guardian::start(const std::vector<std::string>& command) {
  Launch trainer;
  trainer.command = command;
  trainer.environment = inherited_environment({});
  trainer.standard_output = STDERR_FILENO;
  trainer.standard_error = STDERR_FILENO;
  trainer.session = ProcessSession::kOwn;
  trainer.parent_death_signal = SIGKILL;
  const Result<pid_t> pid = launch(trainer);
  if (!pid) {
    report("not-started " + pid.error().text());
    return false;
  }
  main_ = *pid;
  report("started " + std::to_string(main_));
  return true;
}

void Guardian::reap() {
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    childless_ = pid < 0 && errno == ECHILD;
    if (pid <= 0) return;
    ++reaped_;
    if (pid == main_) {
      report("exited " + std::to_string(status));
    } else if (reaped_ <= kStragglersNamedMax) {
      report("straggler " + std::to_string(pid) + " " + std::to_string(status));
    }
  }
}

void Guardian::wait_for_signal(int timeout_ms) {
  pollfd poll_signals = {signals_, POLLIN, 0};
  (void)::poll(&poll_signals, 1, timeout_ms);
  signalfd_siginfo info;
  while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo != static_cast<std::uint32_t>(SIGCHLD)) kill_signalled_ = true;
  }
}

void Guardian::stop_tree() {
  const std::uint64_t count = freeze_descendants(::getpid());
  // SIGSTOP is taken when the process next runs: wait until the kernel shows each one stopped.
  for (int round = 0; round < 200; ++round) {
    bool running = false;
    for (const ProcessState& process : descendants(::getpid())) {
      running = running || (!process.ended() && process.state != 'T' && process.state != 't');
    }
    if (!running) break;
    wait_for_signal(1);
  }
  report("stopped " + std::to_string(count));
}

void Guardian::continue_tree() {
  std::uint64_t count = 0;
  for (const ProcessState& process : descendants(::getpid())) {
    if (!process.ended() && ::kill(process.pid, SIGCONT) == 0) ++count;
  }
  report("continued " + std::to_string(count));
}

void Guardian::kill_tree() {
  reap();  // what has ended by itself was not killed by us
  while (!childless_) {
    freeze_descendants(::getpid());  // so that nothing forks away while we go through it
    for (const ProcessState& process : descendants(::getpid())) {
      if (::kill(process.pid, SIGKILL) == 0 && !process.ended()) killed_.insert(process.pid);
    }
    wait_for_signal(kLookAgain_ms);
    reap();
  }
  report("gone " + std::to_string(killed_.size()) + " " + std::to_string(reaped_));
}

bool Guardian::take_orders() {
  char buffer[kOrderBytesMax];
  const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  orders_.append(buffer, static_cast<std::size_t>(count));
  for (std::size_t end; (end = orders_.find('\n')) != std::string::npos;) {
    const std::string order = orders_.substr(0, end);
    orders_.erase(0, end + 1);
    if (order == "stop") {
      stop_tree();
    } else if (order == "continue") {
      continue_tree();
    } else {
      return false;  // `kill`, and whatever we do not know: the safe end
    }
  }
  return orders_.size() < kOrderBytesMax;
}

void Guardian::serve() {
  while (!kill_signalled_) {
    pollfd ready[2] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (ready[1].revents != 0) {
      wait_for_signal(0);
      reap();
    }
    if (ready[0].revents != 0 && !take_orders()) return;
  }
}

int Guardian::run(const std::vector<std::string>& command) {
  if (!prepare()) {
    report("not-started the guardian cannot set itself up");
    return 70;
  }
  if (!start(command)) return 0;
  serve();
  kill_tree();
  return 0;
}

}  // namespace

int guardian_main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: <tool> guardian COMMAND...; started by the tool itself\n", stderr);
    return 64;
  }
  Guardian guardian;
  return guardian.run(std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace ckptverify
