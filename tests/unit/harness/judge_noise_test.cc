// Evaluations, and what noise leaves decidable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "harness/judge.h"
#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

TEST(JudgeFinal, NamesTheIndexOfTheFirstElementThatDiffers) {
  Observations seen = healthy();
  seen.final_difference = Comparison{};
  seen.final_difference->differences = {{.path = "model.norm",
                                         .component = Component::kModel,
                                         .first = "1.0",
                                         .second = "2.0",
                                         .first_index = 5,
                                         .shape = {2, 3},
                                         .differing_count = 1,
                                         .max_absolute = 1}};
  EXPECT_THAT(finding(judged(seen), "final.model").message,
              HasSubstr("entry model.norm at [1, 2], found 2.0, expected 1.0"));
}

TEST(JudgeNoise, AMissingEntryIsNoneWhateverElseDiffers) {
  Observations seen = healthy();
  add_noise(seen, 0.01);
  seen.noise = Comparison{};
  seen.noise->differences = {
      {.path = "model.norm", .component = Component::kModel, .max_absolute = 0.1}};
  seen.final_difference = Comparison{};
  seen.final_difference->differences = {
      {.path = "model.norm", .component = Component::kModel, .max_absolute = 0.05}};
  EXPECT_THAT(finding(judged(seen), "final.model").message, HasSubstr("within the noise"));
  seen.final_difference->differences.push_back(
      {.path = "model.head", .component = Component::kModel, .kind = DifferenceKind::kMissing});
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kFail);
  EXPECT_THAT(finding(judged(seen), "final.model").message, HasSubstr("entry model.head"));
  seen.final_difference->differences.back().kind = DifferenceKind::kDtype;
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kFail);
}

TEST(JudgeNoise, RunsThatTrainAlikeAndSaveDifferentStatesHaveNone) {
  Observations seen = healthy();
  seen.reference_saved->digests.at("model").at("norm").digest = mark("torn");
  seen.restored_reference = true;
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "noise").status, Status::kInconclusive);
  EXPECT_THAT(finding(judgement, "noise").message, HasSubstr("one of the two saves is wrong"));
  EXPECT_NE(verdict(judgement), Verdict::kPass);
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
  for (RunRecord* run : {&seen.reference, &seen.interrupted}) {
    std::erase_if(run->trace.events,
                  [](const Event& event) { return std::holds_alternative<EvalEvent>(event.what); });
    renumber(*run);
  }
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
  seen.noise = Comparison{};
  seen.final_difference = differing(0.75);
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kFail);
  add_noise(seen, 0.01);
  seen.noise = differing(0.5);
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kPass);
  seen.final_difference = differing(1.5);
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kInconclusive);
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

}  // namespace
}  // namespace ckptverify::scene
