// What the judge's files share: the observations laid out for comparison, and one function a group
// of checks. Pure like the judge itself. A check names a cause only on its own evidence; a failing
// finding without one is a consequence, and judge() gives it the first cause that was named.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/count_text.h"
#include "harness/judge.h"

namespace ckptverify::judging {

using Items = std::map<std::string, StateItem>;
using Steps = std::map<std::uint64_t, const StepEvent*>;

/// The events of one process tree, by what they say: states of all ranks, and one rank's steps.
struct RunView {
  const RunRecord* record = nullptr;  // none: it was not run
  Steps steps;                        // the first event of each step
  std::optional<std::uint64_t> first_step = {};
  std::optional<std::uint64_t> last_step = {};
  std::vector<const RestoredEvent*> restores;
  StateDigests init;
  StateDigests restored_state;
  std::vector<const StateEvent*> restored_events;
  std::map<std::uint64_t, StateDigests> saves;  // live, by step
  const StepEvent* step(std::uint64_t number) const;
  const StepEvent* first() const;
  const RestoredEvent* restored() const { return restores.empty() ? nullptr : restores.front(); }
};

enum class NoiseLevel {
  kUnmeasured,
  kNone,
  kSome,
  kOnlyInCheckpoints,  // training is equal by all that was told, what was saved is not: no noise
};

/// How far two uninterrupted runs of one command part before the save at N.
struct Noise {
  NoiseLevel level = NoiseLevel::kUnmeasured;
  std::map<std::string, double, std::less<>> metrics;      // largest absolute difference, where any
  std::map<Component, double> entries;                     // the same for entries of checkpoints
  std::map<std::string, double, std::less<>> evaluations;  // largest difference, where compared
  bool outputs_repeat = true;                              // of evaluations
  bool batches_repeat = true;
  bool rng_repeats = true;
  std::string first;  // the first difference, for people
};

/// Where the resumed run began, against where it should have.
enum class Start {
  kUnknown,
  kRight,
  kFromScratch,
  kOtherCheckpoint,
  kWrongCount,
  kUnclear,
  kWentBack,  // at the right step, and later from an earlier one again
};

/// An entry that the trainer tells in one component and that lies on disk in another.
struct Misplaced {
  std::string told_label;
  std::string told_path;
  std::string disk_label;
  std::string disk_path;
  std::string root;  // what stands before it on disk
};

struct Case {
  const Plan& plan;
  const Observations& seen;
  RunView reference = {};
  RunView interrupted = {};
  RunView resumed = {};
  StateDigests live = {};                 // of the interrupted run, as it saved at N
  const StateDigests* disk = nullptr;     // none: the checkpoint could not be read
  std::vector<Misplaced> misplaced = {};  // taken out of all that follows and precedes
  std::shared_ptr<const StateDigests> disk_without_misplaced = {};  // what `disk` is then
  StateDigests init = {};  // as built, before anything was loaded
  Noise noise = {};
  Start start = Start::kUnknown;
  /// How the reference counts its steps, where that is not as the contract says; then no step of
  /// any run counts.
  std::string miscount = {};
  std::uint64_t save_step() const { return seen.save_step; }
  std::uint64_t final_step() const { return seen.final_step; }
  /// The step that the reference tells first after N; N + 1 where it tells each.
  std::uint64_t next_step() const;
};

/// As the lead rank, the lowest that speaks, tells its steps.
Case lay_out(const Plan& plan, const Observations& observations);
/// All ranks that tell of steps or of a restore, the lead first.
std::vector<std::uint32_t> ranks_of(const Observations& observations);
/// The same case as that rank tells its steps.
Case seen_by(std::uint32_t rank, const Case& subject);
Noise measure_noise(const Case& subject);
Start find_start(const Case& subject);
/// Whether it restored another state than the one that was given: that explains all that follows.
bool from_elsewhere(Start start);

// Entries against entries.

enum class EntryFault { kMissing, kDiffers };

struct EntryDifference {
  std::string path;
  EntryFault fault = EntryFault::kDiffers;
  const StateItem* expected = nullptr;
  const StateItem* found = nullptr;  // none where missing
};

/// Entries matched by path, else by equal digest. Where the two sides do not name entries alike,
/// what is unmatched is not observed.
struct Match {
  std::size_t equal_count = 0;
  std::size_t unmatched_count = 0;
  std::vector<EntryDifference> differences;
  std::vector<EntryDifference> other_kinds;  // a value here, a tensor there: not comparable
  bool compared() const { return equal_count + differences.size() > 0; }
};

Match match(const Items& expected, const Items& found);
/// What of a component on disk the trainer counts to its state, by path or digest; all of it where
/// it tells nothing. What it never told need not come back.
Items told_part(const Items& disk, const Items* told);
const Items* find_component(const StateDigests& state, std::string_view label);
/// "rng" of "rng.1"; kOther where the label is no component's name.
Component component_of_label(std::string_view label);
bool has_tensors(const Items& items);
std::string_view last_key(std::string_view path);
/// What the trainer tells against what lies on disk, where neither has the entry at its own place.
std::vector<Misplaced> find_misplaced(const StateDigests& told, const StateDigests& disk);
void take_out_told(StateDigests& told, const std::vector<Misplaced>& misplaced);
void take_out_of_disk(StateDigests& disk, const std::vector<Misplaced>& misplaced);
std::vector<std::string> misplaced_labels(const std::vector<Misplaced>& misplaced);
/// A sentence on those of one label, with the plan's key that settles it.
std::string misplaced_text(const std::vector<Misplaced>& misplaced, const std::string& label);

/// What the found entry equals instead of what was expected; empty if nothing that was seen.
std::string equals_instead(const Case& subject, const std::string& label,
                           const EntryDifference& difference);
/// Whether every difference is an entry as it was built, and at least one is known to be.
bool equals_initial(const Case& subject, const std::string& label,
                    const std::vector<EntryDifference>& differences);

// Causes by effect. None: the minimum evidence is missing.

struct Diagnosis {
  std::optional<Cause> cause = {};
  std::string candidates = {};  // "opt-lost, opt-map": what the evidence leaves, where not decided
};

Cause cause(CauseKind kind);
Cause unknown(Component component);
/// A component that was live and is not on disk.
Diagnosis absent_cause(Component component);
/// live != disk: the save is wrong.
Diagnosis save_cause(const Case& subject, const std::string& label, const Match& match);
/// disk != restored: the restore is wrong.
Diagnosis restore_cause(const Case& subject, const std::string& label, const Match& match);
Diagnosis model_cause(const Case& subject, const std::string& label, const Match& match);
Diagnosis optimizer_cause(const Case& subject, const std::string& label, const Match& match);
Diagnosis rng_cause(const Case& subject, const std::string& label, const Match& match);
Diagnosis data_cause(const Case& subject, const std::string& label, const Match& match);
/// Two paths that are one tensor in `expected` and two in `found`; empty if none.
std::optional<std::pair<std::string, std::string>> untied(const Items& expected,
                                                          const Items& found);

/// What the learning rates of the resumed run say of its schedule.
enum class ScheduleFault { kNone, kRestarted, kShifted, kOther };
struct ScheduleDiagnosis {
  ScheduleFault fault = ScheduleFault::kNone;
  std::int64_t shift = 0;  // the resumed rate at step t is the reference's at t + shift
};
ScheduleDiagnosis diagnose_schedule(const Case& subject);

/// The step of the reference that drew this batch, if any.
std::optional<std::uint64_t> batch_origin(const Case& subject, const Digest& batch);
/// The evaluations at that step, in order: of several sets of data, of several sets of weights.
std::vector<const EvalEvent*> evaluations_at(const RunRecord* run, std::uint64_t step);
/// Whether nothing ever draws from the sources that those entries belong to, as far as the
/// reference shows: one that was drawn from before N may be drawn from again after N + M.
bool rng_unused(const Case& subject, const std::set<std::string>& paths);

// Groups of checks, in the order in which judge() asks them.

void judge_process(const Case& subject, Judgement& judgement);
/// Whether what the trainers told is whole and of one piece; judge_process() asks it.
void judge_trace(const Case& subject, Judgement& judgement);
void judge_identity(const Case& subject, Judgement& judgement);
void judge_start(const Case& subject, Judgement& judgement);
void judge_first_step(const Case& subject, Judgement& judgement);
void judge_trajectory(const Case& subject, Judgement& judgement);
/// Where each rank but the lead began, and its steps; after the lead's.
void judge_ranks(const Case& subject, Judgement& judgement);
void judge_evaluation(const Case& subject, Judgement& judgement);
void judge_final(const Case& subject, Judgement& judgement);
void judge_resave(const Case& subject, Judgement& judgement);
void judge_noise(const Case& subject, Judgement& judgement);
std::vector<std::string> not_proven_sentences(const std::vector<Finding>& findings);
std::vector<Curve> draw_curves(const Case& subject);

// Small things.

/// Two runs that already differ by this much before N may differ so again, in both directions.
inline constexpr double kNoiseFactor = 2;
/// Evidence of a difference that passes because of it.
inline constexpr std::string_view kWithinNoise = "within the noise";

/// Whether the trainers told no event at all.
bool tells_nothing(const std::vector<Finding>& findings);
/// By the plan.
bool is_required(const Case& subject, Component component);
/// By design or by policy: settings and what no known component holds, which the run does not
/// compute with, unless the plan requires it.
bool is_incidental(const Case& subject, Component component);
/// Whether a cause has been named by evidence so far.
bool cause_named(const Judgement& judgement);
bool within(const Tolerance& tolerance, double found, double expected);
Tolerance tolerance_of(const Plan& plan, const std::string& metric);
std::string number_text(double value);
std::string step_text(std::uint64_t step);
std::string short_digest(const Digest& digest);
/// The entry's text where it has one, else its digest. Beside one of which only the digest is
/// known, both: a number and a digest cannot be held against each other.
std::string item_text(const StateItem* item, const StateItem* beside = nullptr);

}  // namespace ckptverify::judging
