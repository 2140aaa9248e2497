// When a save is reached, and how the trainer is held there: at the gate, or frozen where it
// honours no holds. Where a trainer tells nothing about its saves, its checkpoint's files are
// watched and the tree is frozen before they are read.

#include <fcntl.h>

#include <algorithm>

#include "harness/file_signs.h"
#include "harness/supervisor.h"

namespace ckptverify {
namespace {

using std::chrono::milliseconds;

/// Between two tries to meet a trainer at its gate: it opens it right after its event.
constexpr milliseconds kGateRetry{1};
/// Between two looks at a checkpoint path; one that did not change in between may be complete.
constexpr milliseconds kPathRetry{20};
/// A trainer that acknowledged a save and does not come to the gate in this time honours no holds.
constexpr milliseconds kGateGrace{2000};

}  // namespace

Reached Supervisor::await_save(const SaveGoal& goal) {
  while (true) {
    collect();
    if (saved(goal)) {
      held_at_ = goal.step;
      return Reached::kGoal;
    }
    if (ended()) {
      collect();  // what it wrote before it ended
      if (saves_.contains(goal.step)) held_at_ = goal.step;
      return held_at_ == goal.step ? Reached::kGoal : Reached::kEnded;
    }
    if (missed(goal)) return Reached::kMissed;
    if (interrupted()) return Reached::kInterrupted;
    const Due due = next_due(goal);
    if (Clock::now() >= due.at) return overdue(due);
    Clock::time_point until = due.at;
    if (saves_.contains(goal.step)) until = std::min(until, Clock::now() + kGateRetry);
    if (!tells_saves_ && goal.complete) until = std::min(until, Clock::now() + kPathRetry);
    wait(until);
  }
}

bool Supervisor::saved(const SaveGoal& goal) {
  if (saves_.contains(goal.step)) return hold(goal.step);
  return !tells_saves_ && goal.complete && saved_by_path(goal);
}

/// No deadline need pass where the trainer itself says that it went past.
bool Supervisor::missed(const SaveGoal& goal) const {
  return !begun_saves_.contains(goal.step) && saves_.upper_bound(goal.step) != saves_.end();
}

bool Supervisor::saved_by_path(const SaveGoal& goal) {
  const std::string seen = file_signature(goal.path);
  if (seen.empty() || seen == refused_signature_) return false;
  if (seen != path_signature_) {
    path_signature_ = seen;
    last_sign_ = Clock::now();
    // Its writer may be in the middle of it; a process that is no more will not go on.
    if (!ended()) return false;
  }
  if (!ended()) stop_tree();
  if (goal.complete()) return true;
  refused_signature_ = file_signature(goal.path);
  release();
  return false;
}

bool Supervisor::hold(std::uint64_t step) {
  if (ended()) return true;
  if (try_gate()) return true;
  const auto& events = trace().events;
  const std::size_t index = saves_.at(step);
  const bool went_on =
      std::any_of(events.begin() + static_cast<std::ptrdiff_t>(index) + 1, events.end(),
                  [&](const Event& event) { return event.pid == events[index].pid; });
  if (!went_on && Clock::now() < last_sign_ + kGateGrace) return false;
  stop_tree();
  return true;
}

bool Supervisor::try_gate() {
  gate_ = Descriptor(::open(options_.gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return gate_.is_open();
}

}  // namespace ckptverify
