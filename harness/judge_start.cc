// Where the resumed run began: at the checkpoint, from scratch, from another checkpoint, or with
// the right state under a wrong number. The model's digests decide; without them the loss of the
// first step does.
#include <algorithm>
#include <filesystem>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

enum class ModelAtStart { kUnseen, kRight, kInitial, kOtherSave, kWrong };

bool equals_other_save(const Case& subject, const std::vector<EntryDifference>& differences) {
  return std::any_of(
      subject.interrupted.saves.begin(), subject.interrupted.saves.end(), [&](const auto& save) {
        const Items* items = find_component(save.second, "model");
        if (save.first == subject.save_step() || items == nullptr) return false;
        return std::all_of(differences.begin(), differences.end(), [&](const EntryDifference& d) {
          const auto item = items->find(d.path);
          return d.found != nullptr && item != items->end() &&
                 item->second.digest == d.found->digest;
        });
      });
}

ModelAtStart model_at_start(const Case& subject) {
  const Items* restored = find_component(subject.resumed.restored_state, "model");
  const Items* expected = subject.disk != nullptr ? find_component(*subject.disk, "model")
                                                  : find_component(subject.live, "model");
  if (restored == nullptr || expected == nullptr) return ModelAtStart::kUnseen;
  const Items told = told_part(*expected, find_component(subject.live, "model"));
  const Match matched = match(told, *restored);
  if (!matched.compared()) return ModelAtStart::kUnseen;
  if (matched.differences.empty()) return ModelAtStart::kRight;
  if (equals_initial(subject, "model", matched.differences)) return ModelAtStart::kInitial;
  if (equals_other_save(subject, matched.differences)) return ModelAtStart::kOtherSave;
  return ModelAtStart::kWrong;
}

bool same_loss(const Case& subject, const StepEvent* found, const StepEvent* expected) {
  return found != nullptr && expected != nullptr && found->loss && expected->loss &&
         within(tolerance_of(subject.plan, "loss"), *found->loss, *expected->loss);
}

/// Without digests: whose loss does the first step have?
Start start_by_loss(const Case& subject) {
  const StepEvent* first = subject.resumed.first();
  if (first == nullptr) return Start::kUnclear;
  const bool as_numbered = same_loss(subject, first, subject.reference.step(first->step));
  const bool as_continued = same_loss(subject, first, subject.reference.step(subject.next_step()));
  if (as_numbered == as_continued) return Start::kUnclear;
  if (as_continued) return Start::kWrongCount;
  return first->step <= 1 ? Start::kFromScratch : Start::kOtherCheckpoint;
}

/// Whether a run that began after N later tells a step that it had behind it.
bool went_back(const Case& subject) {
  const Steps& steps = subject.resumed.steps;
  return !steps.empty() && steps.begin()->first <= subject.save_step();
}

bool lies_in(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto parts = std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return parts.first == directory.end();
}

/// Whether a path that a trainer tells is another of the gate's checkpoints than the one that it
/// was given. Elsewhere may be a copy that it made.
bool is_another_checkpoint(const Observations& seen, const std::string& told) {
  const auto real = seen.real_paths.find(told);
  const auto path =
      std::filesystem::path(real == seen.real_paths.end() ? told : real->second).lexically_normal();
  const auto any = [](const std::vector<std::string>& names, auto&& holds) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return holds(std::filesystem::path(name).lexically_normal());
    });
  };
  const bool of_the_gate =
      any(seen.output, [&](const std::filesystem::path& output) { return lies_in(path, output); });
  const bool given = any(seen.restored_from, [&](const std::filesystem::path& checkpoint) {
    return lies_in(path, checkpoint) || lies_in(checkpoint, path);
  });
  return of_the_gate && !given;
}

std::string start_text(const Case& subject) {
  const RunView& resumed = subject.resumed;
  std::string text = resumed.restored() != nullptr
                         ? "restored as " + step_text(resumed.restored()->step)
                         : std::string("no restore was announced");
  if (resumed.first_step) text += ", first step " + std::to_string(*resumed.first_step);
  return text;
}

Finding start_finding(const Case& subject) {
  Finding finding{.check = "restore.step", .subject = "resumed run", .message = {}};
  const std::string expected = "expected step " + std::to_string(subject.save_step()) +
                               " and first step " + std::to_string(subject.next_step());
  const std::string found = start_text(subject);
  finding.status = Status::kFail;
  switch (subject.start) {
    case Start::kUnknown:
      finding.status = Status::kNotObserved;
      finding.message = "nothing says at which step the resumed run began";
      break;
    case Start::kRight:
      finding.status = subject.resumed.first_step ? Status::kPass : Status::kNotObserved;
      finding.message = "the resumed run counts on: " + found;
      break;
    case Start::kFromScratch:
      finding.cause = cause(CauseKind::kWrongStart);
      finding.message = "the resumed run began from scratch: " + found + "; " + expected;
      break;
    case Start::kOtherCheckpoint:
      finding.cause = cause(CauseKind::kWrongStart);
      finding.message = "the resumed run continues another state: " + found + "; " + expected;
      break;
    case Start::kWrongCount:
      finding.cause = cause(CauseKind::kStepCount);
      finding.message = "the state is right and its step is not: " + found + "; " + expected;
      break;
    case Start::kWentBack:
      finding.cause = cause(CauseKind::kWrongStart);
      finding.message = "the resumed run began anew: after its first step, " +
                        std::to_string(*subject.resumed.first_step) + ", it told " +
                        step_text(subject.resumed.steps.begin()->first) +
                        ", which it had behind it";
      break;
    case Start::kUnclear:
      finding.cause = unknown(Component::kStep);
      finding.message = "the resumed run began at another step: " + found + "; " + expected;
      finding.evidence.push_back({"one of", "step-count, wrong-start"});
      break;
  }
  return finding;
}

/// A restore of another checkpoint than the one that was given, or a second one of another step.
std::optional<Finding> other_restore(const Case& subject) {
  Finding finding{.check = "restore.step",
                  .status = Status::kFail,
                  .cause = cause(CauseKind::kWrongStart),
                  .subject = "resumed run",
                  .message = {}};
  for (const RestoredEvent* restored : subject.resumed.restores) {
    if (restored->step != subject.save_step()) {
      finding.message = "the resumed run restored " + step_text(restored->step) +
                        " as well, expected " + step_text(subject.save_step());
      return finding;
    }
    if (is_another_checkpoint(subject.seen, restored->path)) {
      finding.message =
          "the resumed run says that it restored another checkpoint than it was given: found " +
          restored->path + ", expected " + subject.seen.restored_from.front();
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace

bool from_elsewhere(Start start) {
  return start == Start::kFromScratch || start == Start::kOtherCheckpoint ||
         start == Start::kWentBack;
}

Start find_start(const Case& subject) {
  const RunView& resumed = subject.resumed;
  if (resumed.restored() == nullptr && !resumed.first_step) return Start::kUnknown;
  const std::uint64_t saved = subject.save_step();
  const bool restored_right = resumed.restored() == nullptr || resumed.restored()->step == saved;
  const bool first_right = !resumed.first_step || *resumed.first_step == subject.next_step();
  if (restored_right && first_right) return went_back(subject) ? Start::kWentBack : Start::kRight;
  switch (model_at_start(subject)) {
    case ModelAtStart::kRight:
      return Start::kWrongCount;
    case ModelAtStart::kInitial: {
      const bool at_zero =
          resumed.first_step ? *resumed.first_step <= 1 : resumed.restored()->step == 0;
      return at_zero ? Start::kFromScratch : Start::kUnclear;
    }
    case ModelAtStart::kOtherSave:
      return Start::kOtherCheckpoint;
    case ModelAtStart::kUnseen:
    case ModelAtStart::kWrong:
      return start_by_loss(subject);
  }
  return Start::kUnclear;
}

void judge_start(const Case& subject, Judgement& judgement) {
  Finding finding = start_finding(subject);
  if (finding.status != Status::kFail)
    if (auto other = other_restore(subject)) finding = *std::move(other);
  judgement.findings.push_back(std::move(finding));
}

}  // namespace ckptverify::judging
