// What the learning rates say of the schedule: restarted, shifted, or parted in another way. The
// rates at the resumed run's step N + k are held against the reference's at k and at N + k + shift.
#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

bool same_rates(const Case& subject, const StepEvent& found, const StepEvent& expected) {
  const Tolerance tolerance = tolerance_of(subject.plan, "lr");
  if (found.lr.size() != expected.lr.size()) return false;
  for (std::size_t group = 0; group < found.lr.size(); ++group)
    if (!within(tolerance, found.lr[group], expected.lr[group])) return false;
  return true;
}

struct Fit {
  std::uint64_t compared = 0;
  bool fits = true;
};

/// The resumed rates against the reference's `shift` steps later.
Fit fit(const Case& subject, std::int64_t shift) {
  Fit result;
  for (std::uint64_t step = subject.save_step() + 1; step <= subject.final_step(); ++step) {
    const auto shifted = static_cast<std::int64_t>(step) + shift;
    if (shifted < 1) continue;
    const StepEvent* found = subject.resumed.step(step);
    const StepEvent* expected = subject.reference.step(static_cast<std::uint64_t>(shifted));
    if (found == nullptr || expected == nullptr || found->lr.empty() || expected->lr.empty())
      continue;
    ++result.compared;
    if (!same_rates(subject, *found, *expected)) result.fits = false;
  }
  return result;
}

bool scheduler_restored_right(const Case& subject) {
  const Items* disk =
      subject.disk != nullptr ? find_component(*subject.disk, "scheduler") : nullptr;
  const Items* restored = find_component(subject.resumed.restored_state, "scheduler");
  if (disk == nullptr || restored == nullptr) return false;
  const Match matched = match(*disk, *restored);
  return matched.compared() && matched.differences.empty();
}

/// The smallest shift that explains at least half of the steps.
std::int64_t find_shift(const Case& subject, std::uint64_t compared) {
  const auto farthest = static_cast<std::int64_t>(subject.final_step());
  const auto restart = -static_cast<std::int64_t>(subject.save_step());
  for (std::int64_t distance = 1; distance < farthest; ++distance)
    for (const std::int64_t shift : {-distance, distance}) {
      if (shift == restart) continue;
      const Fit shifted = fit(subject, shift);
      if (shifted.fits && 2 * shifted.compared >= compared && shifted.compared > 0) return shift;
    }
  return 0;
}

}  // namespace

ScheduleDiagnosis diagnose_schedule(const Case& subject) {
  const Fit straight = fit(subject, 0);
  if (straight.fits || straight.compared == 0) return {};
  const auto saved = static_cast<std::int64_t>(subject.save_step());
  const Fit restarted = fit(subject, -saved);
  const bool restart_fits = restarted.fits && restarted.compared > 0;
  // A plateau can fit both: then the scheduler's own state decides.
  if (restart_fits && !scheduler_restored_right(subject))
    return {ScheduleFault::kRestarted, -saved};
  if (const std::int64_t shift = find_shift(subject, straight.compared); shift != 0)
    return {ScheduleFault::kShifted, shift};
  if (restart_fits) return {ScheduleFault::kRestarted, -saved};
  return {ScheduleFault::kOther, 0};
}

}  // namespace ckptverify::judging
