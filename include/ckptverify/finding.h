// What was checked and how it ended. A verdict is a pure function of findings.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/cause.h"
#include "ckptverify/result.h"

namespace ckptverify {

enum class Status {
  kPass,
  kFail,           // the trainer or the checkpoint misbehaved
  kWarn,           // by design or by policy: listed, does not change the verdict
  kInconclusive,   // we could not tell
  kNotObserved,    // nothing exposes it
  kNotApplicable,  // shown unused
  kSkipped,        // by level
  kWaived,         // by the plan, with its reason
};

/// "pass", "fail", ..., "not-observed".
std::string_view status_name(Status status);

struct Evidence {
  std::string name;
  std::string value;
};

struct Finding {
  std::string check;  // "static.checksums", "identity.optimizer", "trajectory.loss"
  Status status = Status::kPass;
  std::optional<Cause> cause = {};  // for kFail
  std::string subject = {};         // file, entry, component or phase
  std::string message;              // one sentence
  std::vector<Evidence> evidence = {};
};

/// The finding that an error of a reader or of the world amounts to: malformed fails with its
/// cause, everything else is inconclusive.
Finding finding_of(const Error& error, std::string check);

enum class Verdict { kPass, kFail, kInconclusive };

std::string_view verdict_name(Verdict verdict);

/// Any fail is fail; else any inconclusive is inconclusive; else pass.
Verdict verdict_of(std::span<const Finding> findings);

/// A cause and the checks that name it, best first: in order of evidence, then of the findings.
struct RankedCause {
  Cause cause;
  std::vector<std::string> checks;
};

std::vector<RankedCause> rank_causes(std::span<const Finding> findings);

}  // namespace ckptverify
