// The order of things: reference, interruption, the checkpoint moved, restore, evaluations,
// comparison. Trainers run one at a time on this thread; reading and digesting go on beside them.

#include "harness/experiment.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "ckptverify/check.h"
#include "harness/file_signs.h"
#include "harness/interrupt.h"
#include "harness/open_watch.h"
#include "harness/reading.h"
#include "harness/stage.h"

namespace ckptverify {
namespace {

namespace fs = std::filesystem;

enum class Next { kGoOn, kStop };

class Experiment {
 public:
  Experiment(const Plan& plan, const FormatTable& formats, const ExperimentOptions& options)
      : plan_(plan),
        options_(options),
        reader_{formats, plan.component_rules, options.threads},
        stage_(plan, options, interrupt_.descriptor()) {}

  Result<ExperimentRecord> run();

 private:
  Result<void> play();
  Result<Next> run_reference();
  Result<void> hold_reference(Supervisor& trainer, bool& stopped_early,
                              std::optional<LostSave>& lost);
  Result<Next> run_interrupted();
  Result<void> move_checkpoint();
  std::future<std::vector<Finding>> start_checks(const FutureReading& checkpoint) const;
  Result<void> choose_restored();
  Result<void> run_resumed();
  Result<std::optional<RunRecord>> evaluate(const std::string& directory,
                                            const fs::path& checkpoint, std::uint64_t step);
  Result<void> evaluate_moved();
  Result<void> evaluate_final();
  Result<Reached> run_to(Supervisor& trainer, const fs::path& run_directory, std::uint64_t step,
                         bool after_restore);
  Result<std::optional<fs::path>> snapshot(const fs::path& run_directory, const std::string& name,
                                           std::uint64_t step, std::optional<LostSave>& lost);
  void conclude();
  /// The user wants to, or a phase left something alive that may meddle with the next.
  bool stop() const { return interrupt_.signal() != 0 || !stage_.left_over().empty(); }
  ComparisonOptions exact() const { return {.threads = options_.threads}; }

  const Plan& plan_;
  const ExperimentOptions& options_;
  const Reader reader_;
  Interrupt interrupt_;
  Stage stage_;
  Observations seen_;
  std::optional<MissedSave> missed_;
  std::optional<LostSave> early_;  // acknowledged while nothing was there

  fs::path interrupted_checkpoint_;  // out of the way, never given to a trainer
  fs::path moved_checkpoint_;        // its copy, for trainers
  fs::path reference_away_;
  fs::path restored_from_;
  FutureReading reference_saved_;
  FutureReading reference_final_;
  FutureReading interrupted_saved_;
  FutureReading resumed_final_;
  std::future<std::vector<Finding>> static_findings_;
  std::future<std::vector<Finding>> final_findings_;
  std::future<std::optional<Comparison>> noise_;
};

/// Runs on to the next save; a trainer without a probe shows it by its files. What did not come is
/// left in missed_.
Result<Reached> Experiment::run_to(Supervisor& trainer, const fs::path& run_directory,
                                   std::uint64_t step, bool after_restore) {
  SaveGoal goal{.step = step, .after_restore = after_restore};
  CKPTVERIFY_TRY(goal.path, stage_.checkpoint_path(run_directory, step));
  goal.complete = [this, path = goal.path] { return bool(read_checkpoint(reader_, path)); };
  early_.reset();
  goal.on_acknowledged = [this, path = goal.path, step, &run_directory](const std::string& told) {
    std::error_code absent;
    if (fs::path(told).lexically_normal() != path) return;
    if (fs::exists(fs::symlink_status(path, absent))) return;
    early_ = LostSave{
        .step = step, .path = path.string(), .why = {}, .files = files_text(run_directory)};
  };
  const Reached reached = trainer.await_save(goal);
  if (reached == Reached::kGoal && trainer.changed_since_acknowledged()) {
    early_ = LostSave{.step = step, .path = goal.path.string(), .why = {}, .unfinished = true};
  }
  if (reached != Reached::kGoal) {
    missed_ =
        MissedSave{.step = step, .path = goal.path.string(), .files = files_text(run_directory)};
  }
  return reached;
}

/// Nothing where the trainer left nothing, or nothing that can be copied, at its checkpoint's path.
/// An error where the copy has no room: that is not the trainer's doing.
Result<std::optional<fs::path>> Experiment::snapshot(const fs::path& run_directory,
                                                     const std::string& name, std::uint64_t step,
                                                     std::optional<LostSave>& lost) {
  CKPTVERIFY_TRY(const fs::path checkpoint, stage_.checkpoint_path(run_directory, step));
  if (early_) {  // what came later was not there when the trainer said so
    lost = std::exchange(early_, std::nullopt);
    return std::optional<fs::path>();
  }
  std::error_code absent;
  if (!fs::exists(fs::symlink_status(checkpoint, absent))) {
    lost = LostSave{
        .step = step, .path = checkpoint.string(), .why = {}, .files = files_text(run_directory)};
    return std::optional<fs::path>();
  }
  const fs::path target = stage_.output() / "checkpoints" / name / checkpoint.filename();
  const Result<Snapshot> copy = stage_.copy(checkpoint, target);
  if (copy) return std::optional(target);
  if (copy.error().subject.starts_with(stage_.output().string() + "/checkpoints/")) {
    return copy.error();
  }
  lost = LostSave{.step = step, .path = checkpoint.string(), .why = copy.error().text()};
  return std::optional<fs::path>();
}

/// To N, past it, to N + M; snapshots while it is held.
Result<void> Experiment::hold_reference(Supervisor& trainer, bool& stopped_early,
                                        std::optional<LostSave>& lost) {
  const fs::path run_directory = stage_.run_directory("reference");
  stopped_early = true;
  CKPTVERIFY_TRY(const Reached at_save, run_to(trainer, run_directory, plan_.save_step, false));
  if (at_save != Reached::kGoal) return {};
  CKPTVERIFY_TRY(const auto saved, snapshot(run_directory, "reference", plan_.save_step, lost));
  if (!saved) return {};
  reference_saved_ = start_reading(reader_, *saved);
  CKPTVERIFY_TRY(const fs::path saved_at, stage_.checkpoint_path(run_directory, plan_.save_step));
  const std::string before = file_signature(saved_at);
  trainer.release();
  CKPTVERIFY_TRY(const Reached at_final, run_to(trainer, run_directory, plan_.final_step, false));
  if (at_final != Reached::kGoal) return {};
  CKPTVERIFY_TRY(const fs::path final_at, stage_.checkpoint_path(run_directory, plan_.final_step));
  const std::string after = file_signature(saved_at);
  seen_.saved_changed_later = saved_at != final_at && !after.empty() && after != before;
  CKPTVERIFY_TRY(const auto last,
                 snapshot(run_directory, "reference-final", plan_.final_step, lost));
  if (!last) return {};
  reference_final_ = start_reading(reader_, *last);
  stopped_early = false;
  return {};
}

Result<Next> Experiment::run_reference() {
  const PhaseRequest phase{.name = "reference",
                           .directory = "reference",
                           .command = plan_.train,
                           .holds = {plan_.save_step, plan_.final_step}};
  CKPTVERIFY_TRY(Supervisor trainer, stage_.begin(phase));
  bool stopped_early = true;
  std::optional<LostSave> lost;
  const Result<void> held = hold_reference(trainer, stopped_early, lost);
  if (!stopped_early || !trainer.ended()) trainer.kill();
  seen_.reference = stage_.end(phase, std::move(trainer));
  seen_.reference.lost_save = std::move(lost);
  seen_.reference.missed_save = std::exchange(missed_, std::nullopt);
  if (!held) return held.error();
  const bool left_over = seen_.reference.kill == KillOutcome::kSurvivors;
  return stopped_early || left_over ? Next::kStop : Next::kGoOn;
}

Result<Next> Experiment::run_interrupted() {
  const PhaseRequest phase{.name = "interrupted",
                           .directory = "interrupted",
                           .command = plan_.train,
                           .holds = {plan_.save_step}};
  CKPTVERIFY_TRY(Supervisor trainer, stage_.begin(phase));
  CKPTVERIFY_TRY(const Reached reached,
                 run_to(trainer, stage_.run_directory("interrupted"), plan_.save_step, false));
  if (reached == Reached::kGoal || !trainer.ended()) trainer.kill();
  seen_.interrupted = stage_.end(phase, std::move(trainer));
  seen_.interrupted.missed_save = std::exchange(missed_, std::nullopt);
  const bool left_over = seen_.interrupted.kill == KillOutcome::kSurvivors;
  return reached != Reached::kGoal || left_over ? Next::kStop : Next::kGoOn;
}

/// Both runs are renamed away, so that nothing is left to resume from where they trained; trainers
/// get a copy elsewhere, readers what no trainer can find.
Result<void> Experiment::move_checkpoint() {
  const fs::path away = stage_.output() / "away" / "interrupted";
  CKPTVERIFY_TRY_VOID(move_away(stage_.run_directory("interrupted"), away));
  reference_away_ = stage_.output() / "away" / "reference";
  CKPTVERIFY_TRY_VOID(move_away(stage_.run_directory("reference"), reference_away_));
  CKPTVERIFY_TRY(interrupted_checkpoint_, stage_.checkpoint_path(away, plan_.save_step));
  std::optional<LostSave>& lost = seen_.interrupted.lost_save;
  CKPTVERIFY_TRY(const auto moved, snapshot(away, "moved", plan_.save_step, lost));
  if (moved) moved_checkpoint_ = *moved;
  if (lost) {  // as the trainer knows the path
    CKPTVERIFY_TRY(const fs::path before,
                   stage_.checkpoint_path(stage_.run_directory("interrupted"), lost->step));
    lost->path = before.string();
  }
  return {};
}

std::future<std::vector<Finding>> Experiment::start_checks(const FutureReading& checkpoint) const {
  return std::async(std::launch::async, [this, future = checkpoint] {
    const auto& reading = future.get();
    std::vector<Finding> findings;
    if (reading->checkpoint) {
      findings = check_checkpoint(*reading->checkpoint, {plan_.required, options_.threads});
    }
    if (reading->error) findings.push_back(finding_of(*reading->error, "static.readable"));
    return findings;
  });
}

/// Two runs that already part before N cannot be held against each other after it: then the
/// reference's own checkpoint is restored, whose future is known.
Result<void> Experiment::choose_restored() {
  restored_from_ = moved_checkpoint_;
  const auto reference = reference_saved_.get();
  const auto interrupted = interrupted_saved_.get();
  noise_ = start_comparison(reference, interrupted, exact());
  if (!reference->fingerprint || !interrupted->fingerprint) return {};
  if (reference->fingerprint->whole == interrupted->fingerprint->whole) return {};
  CKPTVERIFY_TRY(const auto path,
                 stage_.checkpoint_path(stage_.output() / "checkpoints", plan_.save_step));
  const fs::path name = path.filename();
  const fs::path target = stage_.output() / "checkpoints" / "moved-reference" / name;
  CKPTVERIFY_TRY_VOID(stage_.copy(stage_.output() / "checkpoints" / "reference" / name, target));
  restored_from_ = target;
  seen_.restored_reference = true;
  return {};
}

/// A path as it is given and with its links resolved: a trainer may tell either.
std::vector<std::string> names_of(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? std::vector{path.string()} : std::vector{path.string(), real.string()};
}

/// What the resumed run says that it restored, relative to where it was started, with its links
/// resolved: a trainer may have reached another checkpoint through either.
std::map<std::string, std::string> restored_paths(const RunRecord& run,
                                                  const fs::path& working_directory) {
  std::map<std::string, std::string> real;
  for (const Event& event : run.trace.events) {
    const auto* restored = std::get_if<RestoredEvent>(&event.what);
    if (restored == nullptr) continue;
    std::error_code absent;
    const fs::path path = fs::canonical(working_directory / restored->path, absent);
    if (!absent) real.emplace(restored->path, path.string());
  }
  return real;
}

Result<void> Experiment::run_resumed() {
  const OpenWatch watch(restored_from_);
  const PhaseRequest phase{.name = "restored",
                           .directory = "restored",
                           .command = plan_.resume,
                           .values = {{"checkpoint", restored_from_.string()},
                                      {"step", std::to_string(plan_.save_step)}},
                           .holds = {plan_.final_step}};
  seen_.restored_from = names_of(restored_from_);
  seen_.output = names_of(stage_.output());
  CKPTVERIFY_TRY(Supervisor trainer, stage_.begin(phase));
  const fs::path run_directory = stage_.run_directory("restored");
  CKPTVERIFY_TRY(const Reached reached, run_to(trainer, run_directory, plan_.final_step, true));
  Result<std::optional<fs::path>> last = std::optional<fs::path>();
  std::optional<LostSave> lost;
  if (reached == Reached::kGoal) {
    last = snapshot(run_directory, "restored-final", plan_.final_step, lost);
    trainer.kill();
  }
  seen_.resumed = stage_.end(phase, std::move(trainer));
  seen_.resumed->lost_save = std::move(lost);
  seen_.checkpoint_opened = watch.opened();
  seen_.real_paths = restored_paths(*seen_.resumed, stage_.working_directory(phase));
  seen_.resumed->missed_save = std::exchange(missed_, std::nullopt);
  CKPTVERIFY_TRY(const fs::path again, stage_.checkpoint_path(run_directory, plan_.save_step));
  CKPTVERIFY_TRY(const fs::path final, stage_.checkpoint_path(run_directory, plan_.final_step));
  std::error_code absent;
  seen_.resumed_saved_again = again != final && fs::exists(fs::symlink_status(again, absent));
  if (!last) return last.error();
  if (*last) {
    resumed_final_ = start_reading(reader_, **last);
    final_findings_ = start_checks(resumed_final_);
  }
  return {};
}

Result<std::optional<RunRecord>> Experiment::evaluate(const std::string& directory,
                                                      const fs::path& checkpoint,
                                                      std::uint64_t step) {
  if (plan_.eval.empty() || interrupt_.signal() != 0) return std::optional<RunRecord>();
  const std::string at = std::to_string(step);
  const PhaseRequest phase{.name = "evaluation of " + directory + " at " + at,
                           .directory = "evaluation-" + directory,
                           .command = plan_.eval,
                           .values = {{"checkpoint", checkpoint.string()}, {"step", at}}};
  CKPTVERIFY_TRY(Supervisor trainer, stage_.begin(phase));
  (void)trainer.await_end(plan_.deadlines.eval_s, "the end of the evaluation");
  return std::optional(stage_.end(phase, std::move(trainer)));
}

/// A copy of its own: whatever it does to it, what is restored stays as the trainer wrote it.
Result<void> Experiment::evaluate_moved() {
  if (plan_.eval.empty() || interrupt_.signal() != 0) return {};
  const fs::path copy =
      stage_.output() / "checkpoints" / "evaluated" / moved_checkpoint_.filename();
  CKPTVERIFY_TRY_VOID(stage_.copy(moved_checkpoint_, copy));
  CKPTVERIFY_TRY(seen_.fresh_eval, evaluate("interrupted", copy, plan_.save_step));
  return {};
}

Result<void> Experiment::evaluate_final() {
  if (!resumed_final_.valid()) return {};
  // The originals: the snapshots are being read.
  CKPTVERIFY_TRY(const fs::path restored,
                 stage_.checkpoint_path(stage_.run_directory("restored"), plan_.final_step));
  CKPTVERIFY_TRY(seen_.resumed_eval, evaluate("restored", restored, plan_.final_step));
  CKPTVERIFY_TRY(const fs::path reference,
                 stage_.checkpoint_path(reference_away_, plan_.final_step));
  CKPTVERIFY_TRY(seen_.reference_eval, evaluate("reference", reference, plan_.final_step));
  return {};
}

/// Waits for what goes on beside the trainers and puts it into the record.
void Experiment::conclude() {
  const auto record = [](const FutureReading& reading) {
    return reading.valid() ? checkpoint_record(*reading.get()) : std::nullopt;
  };
  if (reference_final_.valid() && resumed_final_.valid()) {
    ComparisonOptions options = exact();
    options.tolerance = plan_.tensors;
    seen_.final_difference =
        start_comparison(reference_final_.get(), resumed_final_.get(), options).get();
  }
  seen_.reference_saved = record(reference_saved_);
  seen_.interrupted_saved = record(interrupted_saved_);
  seen_.reference_final = record(reference_final_);
  seen_.resumed_final = record(resumed_final_);
  if (static_findings_.valid()) seen_.static_findings = static_findings_.get();
  if (final_findings_.valid()) seen_.final_findings = final_findings_.get();
  if (reference_final_.valid() && reference_final_.get()->error) {
    seen_.final_findings.push_back(finding_of(*reference_final_.get()->error, "static.readable"));
  }
  if (noise_.valid()) seen_.noise = noise_.get();
}

Result<void> Experiment::play() {
  seen_.save_step = plan_.save_step;
  seen_.final_step = plan_.final_step;
  CKPTVERIFY_TRY(const Next after_reference, run_reference());
  if (after_reference == Next::kStop || interrupt_.signal() != 0) return {};
  CKPTVERIFY_TRY(const Next after_interruption, run_interrupted());
  if (after_interruption == Next::kStop || interrupt_.signal() != 0) return {};
  CKPTVERIFY_TRY_VOID(move_checkpoint());
  if (moved_checkpoint_.empty()) return {};  // nothing was saved: nothing to restore
  interrupted_saved_ = start_reading(reader_, interrupted_checkpoint_);
  static_findings_ = start_checks(interrupted_saved_);
  CKPTVERIFY_TRY_VOID(evaluate_moved());
  if (stop()) return {};
  CKPTVERIFY_TRY_VOID(choose_restored());
  if (stop()) return {};
  CKPTVERIFY_TRY_VOID(run_resumed());
  if (stop()) return {};
  return evaluate_final();
}

Result<ExperimentRecord> Experiment::run() {
  CKPTVERIFY_TRY_VOID(stage_.set_up());
  const Result<void> played = play();
  if (!played) seen_.broken_off = played.error().text();
  if (seen_.broken_off.empty()) seen_.broken_off = stage_.left_over();
  if (interrupt_.signal() != 0) {
    seen_.broken_off = std::string("stopped by SIG") + ::sigabbrev_np(interrupt_.signal());
  }
  conclude();
  ExperimentRecord record;
  record.observations = std::move(seen_);
  record.phases = stage_.take_phases();
  record.timings = stage_.timings();
  record.interrupted_by = interrupt_.signal();
  return record;
}

}  // namespace

Result<ExperimentRecord> run_experiment(const Plan& plan, const FormatTable& formats,
                                        const ExperimentOptions& options) {
  return Experiment(plan, formats, options).run();
}

}  // namespace ckptverify
