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
/// A checkpoint that nobody acknowledges counts as whole once it did not change for as long, and
/// for twice the longest pause that its writer made: weights first, then the optimizer.
constexpr milliseconds kQuietMin{1000};
/// A trainer that acknowledged a save and does not come to the gate in this time honours no holds.
constexpr milliseconds kGateGrace{2000};

}  // namespace

Reached Supervisor::await_save(const SaveGoal& goal) {
  acknowledgement_told_ = false;
  acknowledged_signature_.clear();
  acknowledgements_ = 0;
  watch(goal.path);
  while (true) {
    collect();
    let_late_ones_pass();
    look_at_acknowledged(goal);
    if (!acknowledgement_told_ && acknowledged(goal.step)) {
      acknowledgement_told_ = true;
      const Event& event = trace().events[saves_.at(goal.step)];
      if (goal.on_acknowledged) goal.on_acknowledged(std::get<SaveEvent>(event.what).path);
    }
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
    if (saves_.contains(goal.step) || !late_.empty()) {
      until = std::min(until, Clock::now() + kGateRetry);
    }
    if (!tells_saves_ && goal.complete) until = std::min(until, Clock::now() + kPathRetry);
    wait(until);
  }
}

/// By all that began it. Where one of them does not follow, the others may wait for it at the gate
/// while it waits for them.
bool Supervisor::acknowledged(std::uint64_t step) const {
  if (!saves_.contains(step)) return false;
  const auto begun = begun_by_.find(step);
  if (begun == begun_by_.end() || ended()) return true;
  const std::set<std::int64_t>& done = ended_by_.at(step);
  return std::includes(done.begin(), done.end(), begun->second.begin(), begun->second.end()) ||
         Clock::now() >= last_sign_ + kGateGrace;
}

/// Each rank may acknowledge its own part: what is there at the last counts.
void Supervisor::look_at_acknowledged(const SaveGoal& goal) {
  const auto done = ended_by_.find(goal.step);
  if (done == ended_by_.end() || done->second.size() == acknowledgements_) return;
  acknowledgements_ = done->second.size();
  acknowledged_signature_ = file_signature(goal.path);
}

bool Supervisor::changed_since_acknowledged() const {
  return !acknowledged_signature_.empty() &&
         file_signature(watched_path_) != acknowledged_signature_;
}

bool Supervisor::saved(const SaveGoal& goal) {
  if (acknowledged(goal.step)) return hold(goal.step);
  if (saves_.contains(goal.step)) return false;
  return !tells_saves_ && goal.complete && saved_by_path(goal);
}

/// No deadline need pass where the trainer itself says that it went past.
bool Supervisor::missed(const SaveGoal& goal) const {
  return !begun_by_.contains(goal.step) && !saves_.contains(goal.step) &&
         saves_.upper_bound(goal.step) != saves_.end();
}

/// A path without {step} holds an older save until it changes.
void Supervisor::watch(const std::filesystem::path& path) {
  refused_signature_ = path == watched_path_ ? path_signature_ : std::string();
  watched_path_ = path;
  path_signature_.clear();
  longest_gap_ = {};
}

/// Whether what is there has been left alone for long enough to be whole.
bool Supervisor::quiet(const std::string& seen) {
  const Clock::time_point now = Clock::now();
  if (seen != path_signature_) {
    if (!path_signature_.empty()) longest_gap_ = std::max(longest_gap_, now - path_changed_);
    path_signature_ = seen;
    path_changed_ = last_sign_ = now;
  }
  // Its writer may be in the middle of it; a process that is no more will not go on.
  return ended() || now - path_changed_ >= std::max<Clock::duration>(kQuietMin, 2 * longest_gap_);
}

bool Supervisor::saved_by_path(const SaveGoal& goal) {
  const std::string seen = file_signature(goal.path);
  if (seen.empty() || seen == refused_signature_) return false;
  // Where steps are told, what was there before this one is an older save.
  if (!ended() && last_step_ && *last_step_ < goal.step) return false;
  if (!quiet(seen)) return false;
  if (!ended()) stop_tree();
  const bool changed = file_signature(goal.path) != seen;
  if (!changed && goal.complete()) return true;
  if (!changed) refused_signature_ = seen;
  release();
  return false;
}

bool Supervisor::hold(std::uint64_t step) {
  if (ended() || gate_.is_open()) return true;
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

void Supervisor::take_late(const Event& event) {
  const auto* save = std::get_if<SaveEvent>(&event.what);
  if (save != nullptr && save->point == SavePoint::kEnd && released_.contains(save->step)) {
    late_.insert(event.pid);
  } else {
    late_.erase(event.pid);
  }
}

/// Another rank, or a second event, may come to a hold when it is over. The gate is opened for it
/// too; should somebody have come to the next hold meanwhile, whose event is then to be read, it
/// stays open, which holds.
void Supervisor::let_late_ones_pass() {
  if (late_.empty() || gate_.is_open() || !try_gate()) return;
  collect();
  const auto is_next = [this](std::uint64_t step) {
    return saves_.contains(step) && !released_.contains(step);
  };
  if (std::any_of(options_.holds.begin(), options_.holds.end(), is_next)) return;
  gate_.close();
}

bool Supervisor::try_gate() {
  gate_ = Descriptor(::open(options_.gate.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  return gate_.is_open();
}

}  // namespace ckptverify
