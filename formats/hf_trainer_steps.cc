// The Trainer counts a global step for every update, also for one that the loss scaler skips. It
// steps the scheduler right after each update that was not skipped, and loads optimizer and
// scheduler both or neither. A fused optimizer skips by itself, and the scheduler then goes on.
#include "formats/hf_trainer_steps.h"

#include <string>
#include <utility>
#include <vector>

#include "formats/container/directory_names.h"
#include "formats/container/generation.h"
#include "formats/container/sharded_layout.h"

namespace ckptverify {
namespace {

struct Steps {
  std::optional<std::int64_t> trainer = {};
  std::optional<std::int64_t> optimizer = {};
  std::optional<std::int64_t> scheduler = {};
  std::optional<std::int64_t> good_streak = {};  // of the scaler: updates since one was skipped
  bool scaled = false;

  std::vector<Evidence> evidence() const {
    std::vector<Evidence> list;
    const auto add = [&list](const char* name, const std::optional<std::int64_t>& steps) {
      if (steps) list.push_back({name, std::to_string(*steps)});
    };
    add("trainer_state.json global_step", trainer);
    add("optimizer steps", optimizer);
    add("scheduler last_epoch", scheduler);
    add("scaler _growth_tracker", good_streak);
    return list;
  }
};

Steps steps_of(const Checkpoint& checkpoint) {
  Steps steps{.trainer = whole_number(checkpoint, "step.global_step"),
              .optimizer = optimizer_steps(checkpoint),
              .scheduler = scheduler_steps(checkpoint, "scheduler."),
              .good_streak = whole_number(checkpoint, "scaler._growth_tracker")};
  steps.scaled = steps.good_streak.has_value();
  return steps;
}

std::string text(const std::optional<std::int64_t>& steps) {
  return std::to_string(*steps);
}

/// What no run can have written: the first contradiction is enough, the rest follows from it.
bool contradict(Checkpoint& checkpoint, const Steps& steps) {
  const auto mixed = [&](const std::string& subject, const std::string& message) {
    mixed_steps(checkpoint, Status::kFail, subject, message, steps.evidence());
    return true;
  };
  if (steps.trainer && steps.optimizer && *steps.optimizer > *steps.trainer)
    return mixed("optimizer", "is of a later save than trainer_state.json; found " +
                                  text(steps.optimizer) + " updates, expected at most " +
                                  text(steps.trainer));
  if (steps.trainer && steps.scheduler && *steps.scheduler > *steps.trainer)
    return mixed("scheduler", "is of a later save than trainer_state.json; found " +
                                  text(steps.scheduler) + " updates, expected at most " +
                                  text(steps.trainer));
  if (!steps.optimizer || !steps.scheduler) return false;
  if (*steps.optimizer > *steps.scheduler)
    return mixed("scheduler", "is of an earlier save than the optimizer; found " +
                                  text(steps.scheduler) + " updates, expected " +
                                  text(steps.optimizer));
  if (!steps.scaled && *steps.optimizer < *steps.scheduler)
    return mixed("optimizer", "is of an earlier save than the scheduler; found " +
                                  text(steps.optimizer) + " updates, expected " +
                                  text(steps.scheduler));
  if (steps.scaled && *steps.optimizer < *steps.good_streak)
    return mixed("optimizer", "is of an earlier save than the scaler; found " +
                                  text(steps.optimizer) + " updates, expected at least the " +
                                  text(steps.good_streak) + " since one was last skipped");
  return false;
}

/// Fewer updates than global steps: skipped ones, or a resume without optimizer, or another save.
void remark(Checkpoint& checkpoint, const Steps& steps) {
  const auto& least = steps.optimizer ? steps.optimizer : steps.scheduler;
  if (!steps.trainer || !least || *least >= *steps.trainer) return;
  mixed_steps(checkpoint, Status::kWarn, steps.optimizer ? "optimizer" : "scheduler",
              "has fewer updates than the Trainer counts steps: updates that were skipped, an "
              "optimizer that started anew, or parts of two saves; found " +
                  text(least) + ", expected " + text(steps.trainer),
              steps.evidence());
}

/// checkpoint-<global_step> is how the Trainer names it, and how it finds it again.
void check_name(Assembly& assembly, const Steps& steps) {
  const std::string name = directory_name(assembly.directory());
  const auto named = number_between(name, "checkpoint-", "");
  if (!named || !steps.trainer || std::cmp_equal(*named, *steps.trainer)) return;
  assembly.fail(CauseKind::kStepCount, "trainer_state.json",
                "has another step than its directory; found global_step " + text(steps.trainer) +
                    ", expected " + std::to_string(*named),
                {{"directory", name}});
}

}  // namespace

void check_hf_trainer_steps(Assembly& assembly) {
  const Steps steps = steps_of(assembly.checkpoint());
  check_name(assembly, steps);
  if (!contradict(assembly.checkpoint(), steps)) remark(assembly.checkpoint(), steps);
}

}  // namespace ckptverify
