// The signal stays pending, so that the descriptor stays readable, and is taken at the end.

#include "harness/interrupt.h"

#include <poll.h>
#include <sys/signalfd.h>

namespace ckptverify {
namespace {

sigset_t watched() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  // A blocked signal would become pending even where it is ignored.
  struct sigaction hang_up = {};
  if (::sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) {
    ::sigaddset(&set, SIGHUP);
  }
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = watched();
  (void)::pthread_sigmask(SIG_BLOCK, &set, &before_);
  signals_ = Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Interrupt::~Interrupt() {
  signalfd_siginfo taken;
  while (::read(signals_.number(), &taken, sizeof taken) > 0) {
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Interrupt::signal() const {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return 0;
  if (::sigismember(&pending, SIGINT) == 1) return SIGINT;
  if (::sigismember(&pending, SIGTERM) == 1) return SIGTERM;
  return ::sigismember(&pending, SIGHUP) == 1 ? SIGHUP : 0;
}

}  // namespace ckptverify
