// The causes that a finding may name: the fault kinds of docs/causes.md, or unknown(<component>)
// when something went wrong in a component and no kind has its minimum evidence.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ckptverify/component.h"

namespace ckptverify {

enum class CauseKind {
  kSchedLost,
  kSchedShift,
  kOptLost,
  kOptMap,
  kOptMeta,
  kScaler,
  kMaster,
  kRngLost,
  kRngRank,
  kRngDrift,
  kDataCursor,
  kDataOrder,
  kDataMulti,
  kStepCount,
  kAccum,
  kEma,
  kKeyMiss,
  kTied,
  kBuffer,
  kValues,
  kShardMissing,
  kTopology,
  kHostState,
  kWrongStart,
  kTornWrite,
  kDiskFull,
  kUncommitted,
  kAsyncExit,
  kAsyncTorn,
  kRotation,
  kSignal,
  kHangFs,
  kTrunc,
  kBitrot,
  kImpostor,
  kStStruct,
  kLayout,
  kTensorRep,
  kPickleDep,
  kByteNondet,
  kUnknown,
};

/// One row of the table of causes: what it means and what a person does about it.
struct CauseKindRow {
  CauseKind kind;
  std::string_view id;       // "sched-lost"
  std::string_view meaning;  // one sentence
  std::string_view remedy;   // one sentence
};

/// All kinds in the order of the enumeration, kUnknown apart.
std::span<const CauseKindRow> cause_kinds();

struct Cause {
  CauseKind kind = CauseKind::kUnknown;
  std::optional<Component> component = {};  // only for kUnknown; none is kOther

  /// "sched-lost", or "unknown(model)".
  std::string id() const;
  /// Equal exactly where the ids are.
  friend bool operator==(const Cause& a, const Cause& b) {
    return a.kind == b.kind &&
           (a.kind != CauseKind::kUnknown ||
            a.component.value_or(Component::kOther) == b.component.value_or(Component::kOther));
  }
};

}  // namespace ckptverify
