// The static verdict on one checkpoint, from its bytes alone: readable without its writer, every
// byte owned, checksums right, values finite, required components present.
#pragma once

#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify {

struct CheckOptions {
  std::vector<Component> required = {};
  Threads threads = {};
};

/// One finding a check, worst news first where a check has several. Never stops early.
std::vector<Finding> check_checkpoint(const Checkpoint& checkpoint,
                                      const CheckOptions& options = {});

}  // namespace ckptverify
