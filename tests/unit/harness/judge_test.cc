// What a pass needs, what processes do to a verdict, what noise leaves decidable, and waivers.
#include "harness/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Judgement judged(const Observations& seen) {
  return judge(plan(), seen);
}

void lose_step_events(RunRecord& run) {
  std::erase_if(run.trace.events,
                [](const Event& event) { return std::holds_alternative<StepEvent>(event.what); });
}

Exit exited(int code) {
  return {.kind = ExitKind::kExited, .code = code};
}

// The pass rule.

TEST(Judge, HealthyRunPassesAndSaysWhatWasProven) {
  const Judgement judgement = judged(healthy());
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_THAT(causes(judgement), IsEmpty());
  EXPECT_THAT(judgement.findings, Each(Field(&Finding::status, Status::kPass)));
  EXPECT_THAT(judgement.not_proven, IsEmpty());
  EXPECT_THAT(judgement.proven, Contains("the optimizer state on disk is the one that trained: 6 "
                                         "entries, live = disk = restored"));
  EXPECT_EQ(judgement.proven.front(),
            "SIGKILL after the save at step 5 ended 2 processes and left none");
}

TEST(Judge, ChecksComeInOrderOfEvidence) {
  std::vector<std::string> ids;
  for (const Finding& finding : judged(healthy()).findings) ids.push_back(finding.check);
  EXPECT_THAT(
      ids,
      ElementsAre("process.reference", "process.kill", "process.restore", "process.continue",
                  "process.save", "process.trace", "static.readable", "identity.model",
                  "identity.optimizer", "identity.scheduler", "identity.scaler", "identity.step",
                  "identity.rng", "identity.data_cursor", "identity.ema", "restore.step",
                  "data.next_batch", "rng.cxx", "rng.torch", "trajectory.lr", "trajectory.scale",
                  "trajectory.loss", "trajectory.grad_norm", "trajectory.batch", "trajectory.rng",
                  "eval.saved", "eval.final", "final.model", "final.optimizer", "final.scheduler",
                  "final.scaler", "final.step", "final.rng", "final.data_cursor", "final.ema",
                  "resave.readable", "resave.identity", "noise"));
}

TEST(Judge, IdentityRowsHoldOneDigestInThreePlaces) {
  const Judgement judgement = judged(healthy());
  ASSERT_EQ(judgement.identity.size(), 8U);
  for (const IdentityRow& row : judgement.identity) {
    EXPECT_THAT(row.live, HasSubstr("ckv1:"));
    EXPECT_EQ(row.live, row.disk);
    EXPECT_EQ(row.disk, row.restored);
  }
}

TEST(Judge, CurvesHoldBothRuns) {
  const Judgement judgement = judged(healthy());
  ASSERT_EQ(judgement.curves.size(), 8U);
  EXPECT_EQ(judgement.curves[0].metric, "loss");
  EXPECT_EQ(judgement.curves[0].run, "reference");
  EXPECT_EQ(judgement.curves[0].points.size(), 10U);
  EXPECT_EQ(judgement.curves[1].run, "restored");
  EXPECT_EQ(judgement.curves[1].points.front(), (std::pair<std::uint64_t, double>{6, 4.0 / 6}));
}

TEST(Judge, EqualStateAndStepsPassWithoutFinalCheckpoints) {
  Observations seen = healthy();
  seen.reference_final.reset();
  seen.resumed_final.reset();
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
}

TEST(Judge, EqualFinalCheckpointsPassWithoutStates) {
  Observations seen = healthy();
  drop_events_of_state(seen.interrupted);
  drop_events_of_state(*seen.resumed);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_EQ(finding(judgement, "identity.model").status, Status::kNotObserved);
  EXPECT_THAT(judgement.not_proven, Contains(HasSubstr("identity.model: ")));
}

TEST(Judge, EqualLossesAloneAreInconclusive) {
  Observations seen = healthy();
  drop_events_of_state(seen.interrupted);
  drop_events_of_state(*seen.resumed);
  seen.reference_final.reset();
  seen.resumed_final.reset();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "trajectory.loss").status, Status::kPass);
  EXPECT_THAT(finding(judgement, "verdict.evidence").message, HasSubstr("live = disk = restored"));
}

TEST(Judge, OneComponentThatWasNotSeenRestoredNeedsFinalCheckpoints) {
  Observations seen = healthy();
  drop_component(restored(seen), "scheduler");
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  seen.reference_final.reset();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "identity.scheduler").message,
            "the scheduler state was not seen live after the restore");
}

TEST(Judge, NoStaticChecksIsNoPass) {
  Observations seen = healthy();
  seen.static_findings.clear();
  EXPECT_THAT(finding(judged(seen), "verdict.evidence").message, HasSubstr("static checks"));
}

TEST(Judge, FailedStaticCheckKeepsItsCause) {
  Observations seen = healthy();
  seen.static_findings = {{.check = "static.checksums",
                           .status = Status::kFail,
                           .cause = Cause{.kind = CauseKind::kBitrot, .component = std::nullopt},
                           .message = "a checksum is wrong"}};
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(causes(judgement), ElementsAre("bitrot"));
}

TEST(Judge, EntriesMissingFromWhatCouldNotBeReadAreInconclusive) {
  Observations seen = healthy();
  seen.static_findings = {{.check = "static.container",
                           .status = Status::kInconclusive,
                           .message = "a shard is of a kind that is not supported"}};
  disk(seen).erase("ema");
  disk(seen).at("model").erase("norm");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "identity.ema").status, Status::kInconclusive);
  EXPECT_EQ(finding(judgement, "identity.model").status, Status::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
}

TEST(Judge, UnseenStepNumbersAreNoPass) {
  Observations seen = healthy();
  lose_step_events(*seen.resumed);
  drop_restored_event(*seen.resumed);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "restore.step").status, Status::kNotObserved);
  EXPECT_THAT(finding(judgement, "verdict.evidence").message, HasSubstr("saved step"));
}

TEST(Judge, ComponentOnDiskAloneIsNotObserved) {
  Observations seen = healthy();
  disk(seen)["config"] = {{"layers", {mark("2"), "2", false}}};
  EXPECT_EQ(finding(judged(seen), "identity.config").status, Status::kNotObserved);
}

TEST(Judge, MissingConfigurationWarnsUnlessRequired) {
  Observations seen = healthy();
  live(seen).components["config"].entries = {{.path = "layers", .digest = mark("2")}};
  EXPECT_EQ(finding(judged(seen), "identity.config").status, Status::kWarn);
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  Plan strict = plan();
  strict.required = {Component::kConfig};
  const Judgement judgement = judge(strict, seen);
  EXPECT_THAT(causes(judgement), ElementsAre("unknown(config)"));
}

TEST(Judge, ComponentAbsentInBothIsNotListed) {
  Observations seen = healthy();
  disk(seen).erase("ema");
  drop_component(live(seen), "ema");
  drop_component(restored(seen), "ema");
  for (auto* record : {&*seen.reference_saved, &*seen.reference_final, &*seen.resumed_final})
    record->digests.erase("ema");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_THAT(judgement.findings, Not(Contains(Field(&Finding::check, "identity.ema"))));
}

TEST(Judge, OptimizerWithoutTensorsNeedNotBeSaved) {
  Observations seen = healthy();
  disk(seen).erase("optimizer");
  std::erase_if(live(seen).components.at("optimizer").entries,
                [](const StateEntry& entry) { return !entry.dtype.empty(); });
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "identity.optimizer").status, Status::kNotApplicable);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
}

TEST(Judge, RandomStateThatNothingDrawsFromIsNotApplicable) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run))
      event->rng = {{"torch", mark("still")}, {"cxx", mark("still")}};
  set_entry(restored(seen), "rng", "torch", "other");
  change_final(seen, "rng", "torch");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "identity.rng").status, Status::kNotApplicable);
  EXPECT_EQ(finding(judgement, "final.rng").status, Status::kNotApplicable);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
}

TEST(Judge, RandomStateTakenAfterTheFirstStepIsNoEvidence) {
  Observations seen = healthy();
  restored(seen).captured_at = "first_optimizer_step";
  set_entry(restored(seen), "rng", "torch", "drawn from by the forward");
  EXPECT_EQ(finding(judged(seen), "identity.rng").status, Status::kNotObserved);
}

TEST(Judge, ScalerThatIsOffIsNotApplicable) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run)) event->scale = 1;
  disk(seen).erase("scaler");
  EXPECT_EQ(finding(judged(seen), "identity.scaler").status, Status::kNotApplicable);
}

TEST(Judge, TiedTensorStoredOnceIsWhole) {
  Observations seen = healthy();
  disk(seen).at("model").erase("head");
  EXPECT_EQ(finding(judged(seen), "identity.model").status, Status::kPass);
}

TEST(Judge, OtherNamesWithEqualElementsMatch) {
  Observations seen = healthy();
  std::map<std::string, StateItem> items;
  for (const auto& [path, item] : disk(seen).at("optimizer")) items["by_name." + path] = item;
  disk(seen).at("optimizer") = std::move(items);
  EXPECT_EQ(finding(judged(seen), "identity.optimizer").status, Status::kPass);
}

TEST(Judge, OtherNamesWithOtherElementsAreNotObserved) {
  Observations seen = healthy();
  std::map<std::string, StateItem> items;
  for (const auto& [path, item] : disk(seen).at("optimizer"))
    items["by_name." + path] = {mark("encoded " + path), item.text, item.is_tensor};
  disk(seen).at("optimizer") = std::move(items);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "identity.optimizer").status, Status::kNotObserved);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
}

TEST(Judge, StaleSaveIsNamedByTheStateThatItEquals) {
  Observations seen = healthy();
  Event event;
  event.role = "trainer";
  StateEvent earlier = live(seen);
  earlier.step = 3;
  set_entry(earlier, "model", "norm", at("norm", 3));
  event.what = earlier;
  seen.interrupted.trace.events.insert(seen.interrupted.trace.events.begin() + 2, event);
  disk(seen).at("model").at("norm").digest = mark(at("norm", 3));
  const Judgement judgement = judged(seen);
  EXPECT_EQ(causes(judgement).front(), "async-torn");
  EXPECT_THAT(finding(judgement, "identity.model").message,
              HasSubstr("it equals the state saved at step 3"));
}

// Processes.

TEST(JudgeProcess, ReferenceThatDiesIsInconclusive) {
  Observations seen = healthy();
  lose_step_events(seen.reference);
  seen.reference.held_at = kSaved;
  seen.reference.exit = exited(1);
  seen.reference.log_tail = "out of memory";
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "process.reference").evidence.back().value, "out of memory");
}

TEST(JudgeProcess, KillThatCameTooLateIsInconclusive) {
  Observations seen = healthy();
  seen.interrupted.kill = KillOutcome::kAlreadyGone;
  seen.interrupted.exit = exited(0);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "process.kill").status, Status::kInconclusive);
}

TEST(JudgeProcess, SurvivorsAreInconclusive) {
  Observations seen = healthy();
  seen.interrupted.kill = KillOutcome::kSurvivors;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(JudgeProcess, SaveThatNeverCameIsInconclusive) {
  Observations seen = healthy();
  seen.interrupted.kill = KillOutcome::kNotSent;
  seen.interrupted.held_at.reset();
  seen.interrupted.overdue = "the save at step 5";
  seen.resumed.reset();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "process.restore").status, Status::kInconclusive);
}

Observations ended_at_restore(const Exit& exit) {
  Observations seen = healthy();
  seen.resumed->trace.events.clear();
  seen.resumed->held_at.reset();
  seen.resumed->kill = KillOutcome::kNotSent;
  seen.resumed->exit = exit;
  seen.resumed->log_tail = "KeyError: 'optimizer'";
  seen.resumed_final.reset();
  return seen;
}

TEST(JudgeProcess, CrashAtRestoreFailsWithTheLog) {
  const Judgement judgement =
      judged(ended_at_restore({.kind = ExitKind::kSignalled, .signal = SIGSEGV}));
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(finding(judgement, "process.restore").message, HasSubstr("crashes"));
  EXPECT_EQ(finding(judgement, "process.restore").evidence.back().value, "KeyError: 'optimizer'");
}

TEST(JudgeProcess, RefusalOfAGoodCheckpointFails) {
  const Judgement judgement = judged(ended_at_restore(exited(3)));
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(finding(judgement, "process.restore").message, HasSubstr("refuses"));
}

TEST(JudgeProcess, HangAtRestoreFails) {
  const Judgement judgement = judged(ended_at_restore(
      {.kind = ExitKind::kTimedOut, .author = ExitAuthor::kUs, .reason = "the first step"}));
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(finding(judgement, "process.restore").message, HasSubstr("hangs"));
}

TEST(JudgeProcess, SuccessWithoutAStepFails) {
  EXPECT_THAT(finding(judged(ended_at_restore(exited(0))), "process.restore").message,
              HasSubstr("reports success"));
}

TEST(JudgeProcess, KillFromOutsideIsInconclusive) {
  const Judgement judgement =
      judged(ended_at_restore({.kind = ExitKind::kSignalled, .signal = SIGKILL}));
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
}

TEST(JudgeProcess, CommandThatCannotStartIsInconclusive) {
  const Judgement judgement =
      judged(ended_at_restore({.kind = ExitKind::kNotStarted, .reason = "no such file"}));
  EXPECT_EQ(finding(judgement, "process.restore").status, Status::kInconclusive);
}

TEST(JudgeProcess, EndBeforeTheFinalStepFails) {
  Observations seen = healthy();
  std::erase_if(seen.resumed->trace.events, [](const Event& event) {
    const auto* step = std::get_if<StepEvent>(&event.what);
    return step != nullptr && step->step > 7;
  });
  seen.resumed->held_at.reset();
  seen.resumed->exit = exited(1);
  seen.resumed_final.reset();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(finding(judgement, "process.continue").message, HasSubstr("ended after step 7"));
  EXPECT_THAT(finding(judgement, "trajectory.loss").message, HasSubstr("at 2 of 5 steps"));
}

TEST(JudgeProcess, EndInTheSecondSaveFails) {
  Observations seen = healthy();
  seen.resumed->held_at.reset();
  seen.resumed->kill = KillOutcome::kNotSent;
  seen.resumed->exit = exited(3);
  seen.resumed_final.reset();
  seen.final_findings.clear();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_EQ(finding(judgement, "process.continue").message,
            "the resumed run ended after step 10 and before its save was done: exit 3");
}

TEST(JudgeProcess, StepToldByALyingNumberIsNoSave) {
  Observations seen = healthy();
  seen.reference.held_at = kSaved;
  step(seen.reference, 4).step = 1000;
  EXPECT_EQ(finding(judged(seen), "process.reference").status, Status::kInconclusive);
}

Exit killed_by_us() {
  return {.kind = ExitKind::kSignalled, .signal = SIGKILL, .author = ExitAuthor::kUs};
}

TEST(JudgeProcess, GateThatIsStoppedNeitherFailsNorPasses) {
  Observations at_restore = ended_at_restore(killed_by_us());
  at_restore.broken_off = "stopped by SIGINT";
  Observations in_training = healthy();
  std::erase_if(in_training.resumed->trace.events, [](const Event& event) {
    const auto* step = std::get_if<StepEvent>(&event.what);
    return step != nullptr && step->step > 7;
  });
  in_training.resumed->held_at.reset();
  in_training.resumed->exit = killed_by_us();
  in_training.resumed_final.reset();
  in_training.broken_off = "stopped by SIGINT";
  Observations at_the_end = healthy();
  at_the_end.broken_off = "stopped by SIGINT";
  for (const Observations& seen : {at_restore, in_training, at_the_end}) {
    const Judgement judgement = judged(seen);
    EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
    EXPECT_THAT(causes(judgement), IsEmpty());
    EXPECT_THAT(finding(judgement, "process.gate").message, HasSubstr("stopped by SIGINT"));
  }
}

TEST(JudgeProcess, StoppedGateKeepsTheFaultsThatWereSeen) {
  Observations seen = healthy();
  set_entry(restored(seen), "scaler", "scale", "65536");
  seen.broken_off = "stopped by SIGTERM";
  EXPECT_THAT(causes(judged(seen)), ElementsAre("scaler"));
}

TEST(JudgeProcess, LostGuardianAndFullDiskAreNotTheTrainersDoing) {
  Observations lost = ended_at_restore({.kind = ExitKind::kTimedOut, .reason = "lost"});
  EXPECT_EQ(verdict(judged(lost)), Verdict::kFail);
  lost.resumed->guardian_lost = true;
  EXPECT_EQ(verdict(judged(lost)), Verdict::kInconclusive);
  Observations full = ended_at_restore(exited(1));
  EXPECT_EQ(verdict(judged(full)), Verdict::kFail);
  full.resumed->disk_full = true;
  EXPECT_EQ(verdict(judged(full)), Verdict::kInconclusive);
  EXPECT_THAT(finding(judged(full), "process.restore").message, HasSubstr("disk"));
}

TEST(JudgeProcess, AcknowledgedSaveThatIsNotThereFails) {
  Observations seen = healthy();
  seen.interrupted.lost_save = LostSave{.step = kSaved, .path = "/run/./step-5", .why = {}};
  seen.resumed.reset();
  seen.static_findings.clear();
  EXPECT_THAT(causes(judged(seen)), ElementsAre("async-exit"));
  EXPECT_THAT(finding(judged(seen), "process.save").message, HasSubstr("nothing is there"));
  // Where the trainer saved elsewhere, or what is there cannot be copied, it is not to blame.
  seen.interrupted.lost_save->path = "/run/checkpoint-5";
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_EQ(finding(judged(seen), "process.save").evidence.front().value, "/run/step-5");
  seen.interrupted.lost_save = LostSave{.step = kSaved, .path = "/run/step-5", .why = "a FIFO"};
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(JudgeProcess, StepsThatDoNotCountUpAreInconclusive) {
  Observations repeated = healthy();
  step(*repeated.resumed, 8).step = 7;
  Observations back = healthy();
  step(back.reference, 4).step = 1;
  for (const Observations& seen : {repeated, back}) {
    EXPECT_EQ(finding(judged(seen), "process.trace").status, Status::kInconclusive);
    EXPECT_THAT(finding(judged(seen), "process.trace").message, HasSubstr("out of order"));
  }
}

TEST(JudgeProcess, GarbledEventsOfAnEvaluationAreInconclusive) {
  Observations seen = healthy();
  seen.resumed_eval->trace.garbled = {{.file = "eval.jsonl", .line = 1, .reason = "no object"}};
  EXPECT_EQ(finding(judged(seen), "process.trace").status, Status::kInconclusive);
}

TEST(JudgeProcess, GarbledEventsAreInconclusive) {
  Observations seen = healthy();
  seen.resumed->trace.garbled = {{.file = "resumed.jsonl", .line = 7, .reason = "no object"}};
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_EQ(finding(judgement, "process.trace").evidence.front().value,
            "resumed.jsonl: line 7: no object");
}

TEST(JudgeProcess, UnreadableFinalSaveIsInconclusive) {
  Observations seen = healthy();
  seen.resumed_final.reset();
  EXPECT_EQ(finding(judged(seen), "final.checkpoint").status, Status::kInconclusive);
}

// The second save.

TEST(JudgeResave, SecondCheckpointThatIsNotWholeFails) {
  Observations seen = healthy();
  seen.final_findings = {{.check = "static.readable", .message = "read"},
                         {.check = "static.components",
                          .status = Status::kFail,
                          .cause = Cause{.kind = CauseKind::kValues},
                          .message = "model: required, and not in the checkpoint"},
                         {.check = "static.container",
                          .status = Status::kFail,
                          .cause = Cause{.kind = CauseKind::kTrunc},
                          .message = "the shard is cut short"}};
  EXPECT_THAT(causes(judged(seen)), ElementsAre("trunc"));
  for (Finding& finding : seen.final_findings) finding.status = Status::kInconclusive;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(JudgeResave, SecondCheckpointsThatNobodyCanReadAreNoPass) {
  Observations seen = healthy();
  seen.reference_final.reset();
  seen.resumed_final.reset();
  seen.final_findings = {{.check = "static.readable",
                          .status = Status::kInconclusive,
                          .message = "no known checkpoint format"}};
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(JudgeResave, SecondSavesThatAreStaleAlikeFail) {
  Observations seen = healthy();
  for (auto* saved : {&*seen.reference_final, &*seen.resumed_final})
    saved->digests["model"] = state(kSaved).at("model");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "final.model").status, Status::kPass);
  EXPECT_THAT(causes(judgement), ElementsAre("async-torn"));
  EXPECT_THAT(finding(judgement, "resave.identity").message,
              HasSubstr("the reference's checkpoint of step 10 is not the state that was live"));
}

TEST(JudgeResave, SecondSavesWithoutALiveStateAreNotObserved) {
  Observations seen = healthy();
  drop_events_of_state(seen.reference);
  drop_events_of_state(*seen.resumed);
  EXPECT_EQ(finding(judged(seen), "resave.identity").status, Status::kNotObserved);
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
}

// Evaluation.

EvalEvent& evaluation_of(RunRecord& run) {
  for (Event& event : run.trace.events)
    if (auto* found = std::get_if<EvalEvent>(&event.what)) return *found;
  throw std::logic_error("no evaluation");
}

TEST(JudgeEvaluation, OtherMetricsFromTheMovedCopyFail) {
  Observations seen = healthy();
  evaluation_of(*seen.fresh_eval).metrics["loss"] = 0.75;
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "eval.saved").status, Status::kFail);
  EXPECT_THAT(finding(judgement, "eval.saved").message,
              HasSubstr("differs in loss: found 0.75, expected 0.6"));
}

TEST(JudgeEvaluation, PlanGrantsATolerance) {
  Observations seen = healthy();
  evaluation_of(*seen.fresh_eval).metrics["loss"] = 0.6001;
  evaluation_of(*seen.fresh_eval).outputs = mark("rounded");
  EXPECT_EQ(verdict(judged(seen)), Verdict::kFail);
  Plan tolerant = plan();
  tolerant.metrics["eval.loss"] = {.relative = 0, .absolute = 0.001};
  EXPECT_EQ(verdict(judge(tolerant, seen)), Verdict::kPass);
}

TEST(JudgeEvaluation, OtherOutputsUnderEqualMetricsFail) {
  Observations seen = healthy();
  evaluation_of(*seen.resumed_eval).outputs = mark("other outputs");
  EXPECT_EQ(finding(judged(seen), "eval.final").status, Status::kFail);
}

TEST(JudgeEvaluation, ProcessThatCannotEvaluateTheCopyFailsOnlyIfItCanElsewhere) {
  Observations seen = healthy();
  seen.fresh_eval->trace.events.clear();
  seen.fresh_eval->exit = exited(1);
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kFail);
  seen.reference_eval->trace.events.clear();
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kInconclusive);
}

// Noise.

void add_noise(Observations& seen, double size) {
  for (StepEvent* event : steps(seen.interrupted)) *event->loss += size;
  for (auto* path : {"wte", "head", "norm"})
    seen.reference_saved->digests.at("model").at(path).digest = mark("nearly");
}

TEST(JudgeNoise, DifferencesWithinIt) {
  Observations seen = healthy();
  add_noise(seen, 0.01);
  for (StepEvent* event : steps(*seen.resumed)) *event->loss += 0.015;
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_EQ(finding(judgement, "noise").status, Status::kWarn);
  EXPECT_THAT(finding(judgement, "trajectory.loss").message, HasSubstr("within the noise"));
}

TEST(JudgeNoise, DifferencesAboveItAreInconclusiveAndNeverFail) {
  Observations seen = healthy();
  add_noise(seen, 0.01);
  for (StepEvent* event : steps(*seen.resumed)) *event->loss += 0.05;
  part_from(seen, kFinal);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
  EXPECT_EQ(finding(judgement, "final.model").status, Status::kInconclusive);
}

TEST(JudgeNoise, StateThatWasNotRestoredFailsAllTheSame) {
  Observations seen = healthy();
  add_noise(seen, 0.01);
  set_entry(restored(seen), "scaler", "scale", "65536");
  EXPECT_THAT(causes(judged(seen)), ElementsAre("scaler"));
}

TEST(JudgeNoise, WhatCameBackIsHeldAgainstTheReferenceThatWasRestored) {
  Observations seen = healthy();
  // The interrupted run saved another model; the reference's snapshot was restored instead.
  for (Event& event : seen.interrupted.trace.events)
    if (auto* state = std::get_if<StateEvent>(&event.what);
        state && state->at == StateMoment::kSave)
      set_entry(*state, "model", "norm", "noisy");
  disk(seen).at("model").at("norm").digest = mark("noisy");
  EXPECT_EQ(verdict(judged(seen)), Verdict::kFail);
  seen.restored_reference = true;
  EXPECT_EQ(finding(judged(seen), "identity.model").status, Status::kPass);
}

TEST(JudgeNoise, EvaluationsWithinTheDifferenceAtTheSave) {
  Observations seen = healthy();
  evaluation_of(seen.interrupted).metrics["loss"] += 0.01;
  evaluation_of(*seen.fresh_eval).metrics["loss"] += 0.01;
  evaluation_of(*seen.resumed_eval).metrics["loss"] += 0.015;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  EXPECT_THAT(finding(judged(seen), "eval.final").message, HasSubstr("within the noise"));
  evaluation_of(*seen.resumed_eval).metrics["loss"] += 0.015;
  EXPECT_EQ(finding(judged(seen), "eval.final").status, Status::kFail);
  add_noise(seen, 0.01);
  EXPECT_EQ(finding(judged(seen), "eval.final").status, Status::kInconclusive);
}

TEST(JudgeNoise, EvaluationsWhoseNoiseWasNotSeenAreLeftOpen) {
  Observations seen = healthy();
  add_noise(seen, 0.01);
  for (RunRecord* run : {&seen.reference, &seen.interrupted})
    std::erase_if(run->trace.events,
                  [](const Event& event) { return std::holds_alternative<EvalEvent>(event.what); });
  evaluation_of(*seen.resumed_eval).metrics["loss"] += 0.01;
  EXPECT_EQ(finding(judged(seen), "eval.final").status, Status::kNotObserved);
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
}

TEST(JudgeNoise, InterruptedCheckpointIsHeldAgainstItsOwnLiveState) {
  Observations seen = healthy();
  add_noise(seen, 0.01);
  seen.restored_reference = true;
  seen.reference_saved->digests = state(kSaved);
  EXPECT_EQ(finding(judged(seen), "identity.interrupted").status, Status::kPass);
  disk(seen).at("ema").at("wte").digest = mark("not what was live");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_EQ(finding(judgement, "identity.ema").status, Status::kPass);
  EXPECT_EQ(finding(judgement, "identity.interrupted").status, Status::kFail);
  EXPECT_EQ(finding(judgement, "identity.interrupted").subject, "ema");
  drop_events_of_state(seen.interrupted);
  EXPECT_THAT(judged(seen).findings, Not(Contains(Field(&Finding::check, "identity.interrupted"))));
}

TEST(JudgeNoise, FinalEntriesWithinTheDifferenceAtTheSave) {
  Observations seen = healthy();
  const auto differing = [](double size) {
    Comparison comparison;
    comparison.differences = {{.path = "model.wte",
                               .component = Component::kModel,
                               .first = "1",
                               .second = "2",
                               .differing_count = 1,
                               .max_absolute = size}};
    return comparison;
  };
  seen.noise = differing(0.5);
  seen.final_difference = differing(0.75);
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kPass);
  seen.final_difference = differing(1.5);
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kInconclusive);
  seen.noise = Comparison{};
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kFail);
}

TEST(JudgeNoise, UnmeasuredNoiseLeavesDivergenceOpen) {
  Observations seen = healthy();
  lose_step_events(seen.interrupted);
  seen.reference_saved.reset();
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "noise").status, Status::kNotObserved);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
}

TEST(JudgeNoise, TolerancesOfThePlanComeFirst) {
  Observations seen = healthy();
  for (StepEvent* event : steps(*seen.resumed)) *event->loss *= 1.0001;
  EXPECT_EQ(finding(judged(seen), "trajectory.loss").status, Status::kFail);
  Plan tolerant = plan();
  tolerant.metrics["loss"] = {.relative = 0.001, .absolute = 0};
  EXPECT_EQ(verdict(judge(tolerant, seen)), Verdict::kPass);
}

// Waivers.

TEST(JudgeWaiver, TakesTheFindingOutOfTheVerdictAndKeepsItsReason) {
  Observations seen = healthy();
  set_entry(restored(seen), "ema", "wte", "reset");
  EXPECT_EQ(verdict(judged(seen)), Verdict::kFail);
  Plan waiving = plan();
  waiving.waivers = {{.check = "identity.ema", .reason = "the average is for plots alone"}};
  const Judgement judgement = judge(waiving, seen);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  const Finding waived = finding(judgement, "identity.ema");
  EXPECT_EQ(waived.status, Status::kWaived);
  EXPECT_THAT(waived.evidence, Contains(Field(&Evidence::value, "the average is for plots alone")));
  EXPECT_THAT(waived.evidence, Contains(Field(&Evidence::value, "fail, ema")));
}

TEST(JudgeWaiver, ThatWaivesNothingIsListed) {
  Plan waiving = plan();
  waiving.waivers = {{.check = "identity.rgn", .reason = "mistyped"},
                     {.check = "identity.ema", .reason = "no longer needed"}};
  const Judgement judgement = judge(waiving, healthy());
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  std::vector<std::string> messages;
  for (const Finding& finding : judgement.findings) {
    if (finding.check != "plan.waiver") continue;
    EXPECT_EQ(finding.status, Status::kWarn);
    messages.push_back(finding.message);
  }
  EXPECT_THAT(messages,
              ElementsAre("the plan waives identity.rgn, and no check of that name was made",
                          "the plan waives identity.ema, and it is pass by itself"));
}

TEST(JudgeWaiver, CannotStandInForEvidence) {
  Observations seen = healthy();
  seen.interrupted.kill = KillOutcome::kAlreadyGone;
  seen.static_findings.clear();
  Plan waiving = plan();
  waiving.waivers = {{.check = "verdict.evidence", .reason = "please"},
                     {.check = "process.kill", .reason = "please"}};
  EXPECT_EQ(verdict(judge(waiving, seen)), Verdict::kInconclusive);
}

}  // namespace
}  // namespace ckptverify::scene
