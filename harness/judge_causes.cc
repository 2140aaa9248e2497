// Which cause an effect on one component proves. A cause is named only with the evidence that
// separates it from its neighbours; otherwise the diagnosis lists what the evidence leaves.
#include <algorithm>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

bool all_of(const std::vector<EntryDifference>& differences, auto&& condition) {
  return !differences.empty() && std::all_of(differences.begin(), differences.end(), condition);
}

/// Hyper-parameters of groups and the counts of updates: everything that is not a moment.
bool is_optimizer_meta(const EntryDifference& difference) {
  return !difference.expected->is_tensor || last_key(difference.path) == "step" ||
         difference.path.find("param_groups") != std::string::npos;
}

bool is_learning_rate(const EntryDifference& difference) {
  const std::string_view key = last_key(difference.path);
  return key == "lr" || key == "initial_lr" || key == "base_lr";
}

/// Every differing entry holds what another differing entry should hold.
bool is_permutation(const std::vector<EntryDifference>& differences) {
  std::multiset<Digest> expected;
  std::multiset<Digest> found;
  for (const EntryDifference& difference : differences) {
    if (is_optimizer_meta(difference)) continue;
    if (difference.found == nullptr) return false;
    expected.insert(difference.expected->digest);
    found.insert(difference.found->digest);
  }
  return !expected.empty() && expected == found;
}

/// The restored tensors that differ are all zero, as a fresh optimizer's are.
bool is_zero(const StateEntry& entry) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 26;  // a digest of zeros must stay cheap
  const auto dtype = dtype_named(entry.dtype);
  const auto elements = checked_product(entry.shape);
  if (!dtype || !elements) return false;
  const auto size = checked_multiply(*elements, dtype_size(*dtype));
  if (!size || *size > kBytesMax) return false;
  const std::vector<std::byte> zeros(*size);
  return tensor_digest(entry.dtype, entry.shape, zeros) == entry.digest;
}

bool restored_as_zero(const Case& subject, const std::string& label, const std::string& path) {
  for (const StateEvent* event : subject.resumed.restored_events) {
    const auto component = event->components.find(label);
    if (component == event->components.end()) continue;
    for (const StateEntry& entry : component->second.entries)
      if (entry.path == path) return is_zero(entry);
  }
  return false;
}

Diagnosis scheduler_cause(const Case& subject, const std::string& label, const Match& match) {
  switch (diagnose_schedule(subject).fault) {
    case ScheduleFault::kRestarted:
      return {cause(CauseKind::kSchedLost)};
    case ScheduleFault::kShifted:
      return {cause(CauseKind::kSchedShift)};
    case ScheduleFault::kNone:
    case ScheduleFault::kOther:
      break;
  }
  if (equals_initial(subject, label, match.differences)) return {cause(CauseKind::kSchedLost)};
  return {unknown(Component::kScheduler), "sched-lost, sched-shift"};
}

}  // namespace

Cause cause(CauseKind kind) {
  return {.kind = kind, .component = std::nullopt};
}

Cause unknown(Component component) {
  return {.kind = CauseKind::kUnknown, .component = component};
}

Diagnosis absent_cause(Component component) {
  switch (component) {
    case Component::kOptimizer:
      return {cause(CauseKind::kOptLost)};
    case Component::kScheduler:
      return {cause(CauseKind::kSchedLost)};
    case Component::kScaler:
      return {cause(CauseKind::kScaler)};
    case Component::kStep:
      return {cause(CauseKind::kStepCount)};
    case Component::kRng:
      return {cause(CauseKind::kRngLost)};
    case Component::kDataCursor:
      return {cause(CauseKind::kDataCursor)};
    case Component::kEma:
      return {cause(CauseKind::kEma)};
    case Component::kModel:
      return {unknown(component), "values, shard-missing, async-exit"};
    case Component::kConfig:
    case Component::kOther:
      break;
  }
  return {unknown(component)};
}

std::optional<std::pair<std::string, std::string>> untied(const Items& expected,
                                                          const Items& found) {
  std::map<Digest, std::string> first_of;
  for (const auto& [path, item] : expected) {
    if (!item.is_tensor) continue;
    const auto [first, is_first] = first_of.emplace(item.digest, path);
    if (is_first) continue;
    const auto one = found.find(first->second);
    const auto other = found.find(path);
    if (one == found.end() || other == found.end()) continue;
    if (one->second.digest != other->second.digest) return std::pair{first->second, path};
  }
  return std::nullopt;
}

Diagnosis model_cause(const Case& subject, const std::string& label, const Match& matched) {
  const Items* disk = subject.disk != nullptr ? find_component(*subject.disk, label) : nullptr;
  const Items* restored = find_component(subject.resumed.restored_state, label);
  if (disk != nullptr && restored != nullptr && matched.equal_count > 0)
    if (untied(*disk, *restored)) return {cause(CauseKind::kTied)};
  if (equals_initial(subject, label, matched.differences)) return {cause(CauseKind::kKeyMiss)};
  const auto another_save = [&](const EntryDifference& difference) {
    return equals_instead(subject, label, difference).starts_with("the state saved at");
  };
  if (all_of(matched.differences, another_save)) return {cause(CauseKind::kWrongStart)};
  return {unknown(Component::kModel), "key-miss, master, wrong-start"};
}

Diagnosis optimizer_cause(const Case& subject, const std::string& label, const Match& matched) {
  const auto& differences = matched.differences;
  if (all_of(differences, is_learning_rate)) {
    const ScheduleDiagnosis schedule = diagnose_schedule(subject);
    if (schedule.fault == ScheduleFault::kRestarted) return {cause(CauseKind::kSchedLost)};
    if (schedule.fault == ScheduleFault::kShifted) return {cause(CauseKind::kSchedShift)};
  }
  if (all_of(differences, is_optimizer_meta) &&
      has_tensors(*find_component(*subject.disk, label))) {
    const auto lost = [](const EntryDifference& d) {
      return d.found == nullptr && d.path.find("param_groups") == std::string::npos;
    };
    if (!all_of(differences, lost)) return {cause(CauseKind::kOptMeta)};
  }
  if (is_permutation(differences)) return {cause(CauseKind::kOptMap)};
  const auto lost = [&](const EntryDifference& d) {
    return is_optimizer_meta(d) || d.found == nullptr || restored_as_zero(subject, label, d.path) ||
           equals_initial(subject, label, {d});
  };
  if (all_of(differences, lost)) return {cause(CauseKind::kOptLost)};
  return {unknown(Component::kOptimizer), "opt-lost, opt-map, opt-meta"};
}

Diagnosis save_cause(const Case& subject, const std::string& label, const Match& matched) {
  const Component component = component_of_label(label);
  const auto& differences = matched.differences;
  const auto missing = [](const EntryDifference& d) { return d.fault == EntryFault::kMissing; };
  const auto earlier = [&](const EntryDifference& d) {
    return equals_instead(subject, label, d).starts_with("the state saved at");
  };
  if (component == Component::kOptimizer) {
    if (all_of(differences, is_optimizer_meta)) return {cause(CauseKind::kOptMeta)};
    if (all_of(differences, missing)) return {cause(CauseKind::kOptLost)};
    if (is_permutation(differences)) return {cause(CauseKind::kOptMap)};
  }
  if (component == Component::kModel) {
    const Items* ema = find_component(subject.live, "ema");
    const auto averaged = [&](const EntryDifference& d) {
      if (d.found == nullptr || ema == nullptr) return false;
      const auto twin = ema->find(d.path);
      return twin != ema->end() && twin->second.digest == d.found->digest;
    };
    if (all_of(differences, averaged)) return {cause(CauseKind::kEma)};
    const auto buffer = [](const EntryDifference& d) {
      const std::string_view key = last_key(d.path);
      return d.found == nullptr &&
             (key == "running_mean" || key == "running_var" || key == "num_batches_tracked");
    };
    if (all_of(differences, buffer)) return {cause(CauseKind::kBuffer)};
  }
  if (all_of(differences, earlier)) return {cause(CauseKind::kAsyncTorn)};
  if (component == Component::kModel)
    return {unknown(component), "async-torn, values, buffer, shard-missing"};
  if (component == Component::kOptimizer)
    return {unknown(component), "opt-lost, opt-map, async-torn"};
  return absent_cause(component);
}

Diagnosis restore_cause(const Case& subject, const std::string& label, const Match& matched) {
  const Component component = component_of_label(label);
  switch (component) {
    case Component::kModel:
      return model_cause(subject, label, matched);
    case Component::kOptimizer:
      return optimizer_cause(subject, label, matched);
    case Component::kScheduler:
      return scheduler_cause(subject, label, matched);
    case Component::kScaler:
      return {cause(CauseKind::kScaler)};
    case Component::kStep:
      return {cause(CauseKind::kStepCount)};
    case Component::kRng:
      return rng_cause(subject, label, matched);
    case Component::kDataCursor:
      return data_cause(subject, label, matched);
    case Component::kEma:
      return {cause(CauseKind::kEma)};
    case Component::kConfig:
    case Component::kOther:
      break;
  }
  return {unknown(component)};
}

}  // namespace ckptverify::judging
