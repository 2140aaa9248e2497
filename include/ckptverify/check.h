// The static verdict on one checkpoint, from its bytes alone: readable without its writer, every
// byte owned, checksums right, values finite, required components present.
#pragma once

#include <optional>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// What NaN, Infinity and tensors that are zero all over are.
enum class NotFinite { kWarn, kFail };

struct CheckOptions {
  std::vector<Component> required = {};
  Threads threads = {};
  NotFinite not_finite = NotFinite::kWarn;
};

struct CheckResult {
  std::vector<Finding> findings;
  std::optional<Fingerprint> fingerprint;  // none where a tensor could not be read
};

/// One finding a check, worst news first where a check has several. Never stops early. Every byte
/// is read once where tensors lie in the files as they are read.
CheckResult check_and_fingerprint(const Checkpoint& checkpoint, const CheckOptions& options = {});

/// The findings alone.
std::vector<Finding> check_checkpoint(const Checkpoint& checkpoint,
                                      const CheckOptions& options = {});

}  // namespace ckptverify
