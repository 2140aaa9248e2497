// What processes and their second saves do to a verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "harness/judge.h"
#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST(JudgeProcess, RunThatWasNeverStartedMissedNoSave) {
  Observations seen = healthy();
  seen.interrupted = {};
  seen.resumed.reset();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "process.kill").status, Status::kInconclusive);
  EXPECT_THAT(finding(judgement, "process.kill").message, HasSubstr("was not started"));
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

TEST(JudgeProcess, ARestoreThatOpensNothingOfItsCheckpointIsAWrongStart) {
  Observations seen = healthy();
  seen.checkpoint_opened = true;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  seen.checkpoint_opened = false;
  EXPECT_EQ(finding(judged(seen), "process.restore").status, Status::kFail);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
}

TEST(JudgeProcess, AKillThatDidNotReachWhoToldTheSaveProvesNothing) {
  Observations seen = healthy();
  seen.interrupted.out_of_reach = {71};
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(finding(judged(seen), "process.kill").message,
              HasSubstr("process 71, which told the save at step 5, was not there to be killed"));
}

TEST(JudgeProcess, ASaveThatGoesOnAfterItsAcknowledgementFails) {
  Observations seen = healthy();
  seen.interrupted.lost_save = {
      .step = kSaved, .path = "/run/step-5", .why = {}, .unfinished = true};
  EXPECT_THAT(causes(judged(seen)), ElementsAre("async-exit"));
  EXPECT_THAT(finding(judged(seen), "process.save").message,
              HasSubstr("its files still changed afterwards: /run/step-5"));
}

TEST(JudgeProcess, ASaveThatWritesIntoAnEarlierOneIsToldOf) {
  Observations seen = healthy();
  seen.saved_changed_later = true;
  EXPECT_EQ(finding(judged(seen), "process.save").status, Status::kWarn);
}

TEST(JudgeResave, SecondSavesThatAreStaleAlikeFail) {
  Observations seen = healthy();
  for (auto* saved : {&*seen.reference_final, &*seen.resumed_final})
    saved->digests["model"] = state(kSaved).at("model");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "final.model").status, Status::kNotObserved);
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

}  // namespace
}  // namespace ckptverify::scene
