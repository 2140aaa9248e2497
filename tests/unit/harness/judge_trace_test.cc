// What trainers tell that does not fit together is never taken for proof.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "harness/judge.h"
#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// What another process tells after all others.
Event& told_by(RunRecord& run, std::uint32_t rank, std::int64_t pid, std::uint64_t seq,
               decltype(Event::what) what) {
  Event event;
  event.seq = seq;
  event.pid = pid;
  event.rank = rank;
  event.role = "trainer";
  event.what = std::move(what);
  return run.trace.events.emplace_back(std::move(event));
}

Finding trace_of(const Observations& seen) {
  return finding(judged(seen), "process.trace");
}

TEST(JudgeTrace, AnotherProcessThatTrainsFromTheStartIsAWrongStart) {
  Observations seen = healthy();
  for (std::uint64_t number = 1; number <= kFinal; ++number)
    told_by(*seen.resumed, 0, 77, number - 1, StepEvent{.step = number});
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
  EXPECT_THAT(finding(judged(seen), "restore.step").message,
              HasSubstr("began anew: after its first step, 6, it told step 1"));
  EXPECT_THAT(trace_of(seen).message, HasSubstr("another process went on as the same rank"));
  EXPECT_THAT(trace_of(seen).message, HasSubstr("out of order"));
}

TEST(JudgeTrace, ALostEventLeavesOpenWhatItSaid) {
  Observations seen = healthy();
  std::erase_if(seen.resumed->trace.events, [](const Event& event) { return event.seq == 3; });
  EXPECT_EQ(trace_of(seen).status, Status::kInconclusive);
  EXPECT_THAT(trace_of(seen).evidence.front().value, HasSubstr("seq 3"));
}

TEST(JudgeTrace, AStateToldTwiceAndNotAlikeIsOpen) {
  Observations seen = healthy();
  StateEvent other = restored(seen);
  set_entry(other, "optimizer", "state.0.exp_avg", "zeros");
  told_by(*seen.resumed, 1, 77, 0, other);
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(trace_of(seen).message, HasSubstr("told twice and not alike"));
}

TEST(JudgeTrace, ASecondRestoredStateUnderAnotherStepIsNotPassedOver) {
  Observations seen = healthy();
  StateEvent other = restored(seen);
  other.step = 0;
  set_entry(other, "optimizer", "state.0.exp_avg", "zeros");
  told_by(*seen.resumed, 0, 0, seen.resumed->trace.events.size(), other);
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(trace_of(seen).message, HasSubstr("told twice and not alike"));
}

TEST(JudgeTrace, AnotherNumberOfRanksIsAnotherRun) {
  Observations seen = healthy();
  for (Event& event : seen.reference.trace.events) event.world = 4;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(trace_of(seen).message, HasSubstr("4 ranks and the resumed run 1 rank"));
}

TEST(JudgeTrace, ASecondRestoreOfAnotherStepIsAWrongStart) {
  Observations seen = healthy();
  told_by(*seen.resumed, 0, 0, seen.resumed->trace.events.size(),
          RestoredEvent{"/moved/step-5", 0});
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
}

TEST(JudgeTrace, AnotherCheckpointOfTheGateThanTheOneGivenIsAWrongStart) {
  Observations seen = healthy();
  seen.output = {"/moved"};
  seen.restored_from = {"/moved/step-5"};
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  seen.restored_from = {"/moved/step-5/model.pt"};  // it may tell the directory
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  seen.restored_from = {"/moved/elsewhere/step-5"};
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
  seen.output = {"/gate"};  // a copy that the trainer made for itself
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  seen.real_paths["/moved/step-5"] = "/gate/away/reference/step-5";  // through a link
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
}

TEST(JudgeTrace, ARunThatDiesByItselfAtItsEndIsNoGoodEnd) {
  for (const bool by_signal : {true, false}) {
    Observations seen = healthy();
    seen.resumed->kill = KillOutcome::kAlreadyGone;
    seen.resumed->exit = exited(by_signal ? 0 : 1);
    if (by_signal)
      seen.resumed->exit = {
          .kind = ExitKind::kSignalled, .signal = SIGSEGV, .author = ExitAuthor::kItself};
    EXPECT_EQ(finding(judged(seen), "process.continue").status, Status::kInconclusive);
    seen.resumed->exit = exited(0);
    EXPECT_EQ(finding(judged(seen), "process.continue").status, Status::kPass);
  }
}

TEST(JudgeTrace, ProcessesThatAnyRunLeavesAreNoPass) {
  Observations seen = healthy();
  seen.resumed->kill = KillOutcome::kSurvivors;
  EXPECT_EQ(finding(judged(seen), "process.continue").status, Status::kInconclusive);
  seen = healthy();
  seen.reference.kill = KillOutcome::kSurvivors;
  EXPECT_EQ(finding(judged(seen), "process.reference").status, Status::kInconclusive);
}

TEST(JudgeTrace, FiguresOfAnEvaluationThatThenFailedAreOpen) {
  Observations seen = healthy();
  seen.fresh_eval->exit = exited(1);
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kInconclusive);
  EXPECT_EQ(finding(judged(seen), "eval.final").status, Status::kPass);
}

TEST(JudgeTrace, AnEvaluationOfAnotherStepIsNotHeldAgainstThisOnes) {
  Observations seen = healthy();
  for (Event& event : seen.fresh_eval->trace.events) std::get<EvalEvent>(event.what).step = 0;
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kInconclusive);
  EXPECT_THAT(finding(judged(seen), "eval.saved").message, HasSubstr("says that it is of step 0"));
  seen = healthy();
  for (Event& event : seen.resumed_eval->trace.events) std::get<EvalEvent>(event.what).step = 5;
  EXPECT_EQ(finding(judged(seen), "eval.final").status, Status::kInconclusive);
}

void tell_two_evaluations(RunRecord& run, double average) {
  for (Event& event : run.trace.events)
    if (auto* told = std::get_if<EvalEvent>(&event.what)) {
      const EvalEvent other{.step = told->step, .metrics = {{"average_loss", average}}};
      told_by(run, 0, 0, run.trace.events.size(), other);
      return;
    }
}

TEST(JudgeTrace, EveryEvaluationOfAStepIsCompared) {
  Observations seen = healthy();
  std::erase_if(seen.interrupted.trace.events,
                [](const Event& event) { return std::holds_alternative<EndEvent>(event.what); });
  tell_two_evaluations(seen.interrupted, 2);
  tell_two_evaluations(*seen.fresh_eval, 2);
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kPass);
  std::get<EvalEvent>(seen.fresh_eval->trace.events.back().what).metrics["average_loss"] = 7;
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kFail);
}

TEST(JudgeTrace, AnEvaluationMayCoverOneOfSeveral) {
  Observations seen = healthy();
  tell_two_evaluations(seen.interrupted, 2);
  EXPECT_EQ(finding(judged(seen), "eval.saved").status, Status::kPass);
}

TEST(JudgeTrace, StepsThatAreToldFromZeroDoNotCount) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run)) --event->step;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(trace_of(seen).message, HasSubstr("tells its steps from 0; `step` is the number"));
}

TEST(JudgeTrace, SavesThatCountSomethingElseThanStepsDoNotFailARun) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run)) event->step *= 3;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(trace_of(seen).message, HasSubstr("tells step 15 before its save of step 5"));
}

TEST(JudgeTrace, StepsThatAreToldNowAndThenAreExpectedWhereTheReferenceTellsThem) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed}) {
    std::erase_if(run->trace.events, [](const Event& event) {
      const auto* step = std::get_if<StepEvent>(&event.what);
      return step != nullptr && step->step % 5 != 0;
    });
    renumber(*run);
  }
  EXPECT_EQ(finding(judged(seen), "restore.step").status, Status::kPass);
  EXPECT_NE(verdict(judged(seen)), Verdict::kFail);
}

TEST(JudgeTrace, AForkedWorkerGoesOnWithItsParentsNumbers) {
  Observations seen = healthy();
  told_by(seen.reference, 0, 78, 4, MemoryEvent{.device = "cpu"});
  EXPECT_EQ(trace_of(seen).status, Status::kPass);
  told_by(seen.reference, 0, 79, 400, MemoryEvent{.device = "cpu"});
  EXPECT_EQ(trace_of(seen).status, Status::kInconclusive);
}

TEST(JudgeTrace, LossesThatAreNoNumbersShowNothing) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run)) event->loss = std::nan("");
  EXPECT_EQ(finding(judged(seen), "trajectory.loss").status, Status::kNotObserved);
}

}  // namespace
}  // namespace ckptverify::scene
