// SIGINT, SIGTERM and SIGHUP as something to wait for: while this lives they no longer end the
// process but make a descriptor readable. Threads that are started meanwhile leave them to it. A
// SIGHUP that is ignored (nohup) stays so.
#pragma once

#include <signal.h>

#include "harness/descriptor.h"

namespace ckptverify {

class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  /// Readable once a signal came; stays so.
  int descriptor() const { return signals_.number(); }
  /// The signal that came; 0 if none did.
  int signal() const;

 private:
  sigset_t before_ = {};
  Descriptor signals_;
};

}  // namespace ckptverify
