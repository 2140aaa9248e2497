// What the reader took for another component than the trainer tells, what it tells as another kind,
// and what it never tells: none of it is held against the trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge.h"
#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The reader filed all entries of a component under the model.
void file_under_model(StateDigests& disk, const std::string& label) {
  for (auto& [path, item] : disk.at(label)) {
    item.root = "";
    disk.at("model").emplace(path, item);
  }
  disk.erase(label);
}

TEST(JudgeMisplaced, StepThatLiesInTheModelIsInconclusiveAndNamesThePlansKey) {
  Observations seen = healthy();
  file_under_model(disk(seen), "step");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
  const Finding step = finding(judgement, "identity.step");
  EXPECT_EQ(step.status, Status::kInconclusive);
  EXPECT_THAT(step.message, HasSubstr("1 entry of the step state, as the trainer tells it, lies on "
                                      "disk in what was taken for the model state"));
  EXPECT_THAT(step.message, HasSubstr("[checkpoints] components = ['^step$=step']"));
  EXPECT_EQ(finding(judgement, "identity.model").status, Status::kPass);
}

TEST(JudgeMisplaced, EverythingUnderOneRootNamesNoFault) {
  Observations seen = healthy();
  for (const char* label : {"optimizer", "step", "rng"}) file_under_model(disk(seen), label);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
  EXPECT_THAT(finding(judgement, "identity.optimizer").message,
              HasSubstr("6 entries of the optimizer state"));
  EXPECT_THAT(finding(judgement, "identity.optimizer").message,
              HasSubstr("'^param_groups\\.0\\.lr$=optimizer'"));
}

TEST(JudgeMisplaced, WithoutTheLiveStateTheRestoredOneTells) {
  Observations seen = healthy();
  drop_events_of_state(seen.interrupted);
  file_under_model(disk(seen), "optimizer");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
}

TEST(JudgeMisplaced, RequiredComponentThatLiesElsewhereIsNotAbsent) {
  Observations seen = healthy();
  file_under_model(disk(seen), "step");
  seen.static_findings.push_back(
      {.check = "static.components",
       .status = Status::kFail,
       .cause = Cause{.kind = CauseKind::kStepCount, .component = std::nullopt},
       .subject = "step",
       .message = "the required component step is absent"});
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
}

TEST(JudgeMisplaced, WhatIsNowhereOnDiskIsStillLost) {
  Observations seen = healthy();
  disk(seen).erase("optimizer");
  EXPECT_THAT(causes(judged(seen)), ElementsAre("opt-lost"));
  seen = healthy();
  disk(seen).erase("step");  // state.0.step holds the same number, and is the optimizer's
  EXPECT_THAT(causes(judged(seen)), ElementsAre("step-count"));
}

TEST(JudgeMisplaced, FaultInWhatLiesAtItsPlaceKeepsItsCause) {
  Observations seen = healthy();
  file_under_model(disk(seen), "step");
  drop_component(restored(seen), "optimizer");
  restored(seen).components["optimizer"] = {};
  EXPECT_THAT(causes(judged(seen)), ElementsAre("opt-lost"));
}

TEST(JudgeMisplaced, EntryThatTheTrainerNeverToldNeedNotComeBack) {
  Observations seen = healthy();
  disk(seen).at("model")["written_by"] = {.digest = mark("trainer 1.2"), .text = "trainer 1.2"};
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_EQ(finding(judgement, "identity.model").status, Status::kPass);
  EXPECT_THAT(finding(judgement, "identity.model").message,
              HasSubstr("; 1 value more on disk not told as state"));
}

TEST(JudgeMisplaced, TensorThatTheTrainerNeverToldIsNeitherLostNorProven) {
  Observations seen = healthy();
  disk(seen).at("optimizer")["state.0.exp_avg_sq"] = {
      .digest = mark("second moment"), .text = "float32[4, 2]", .is_tensor = true};
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), IsEmpty());
  EXPECT_EQ(finding(judgement, "identity.optimizer").status, Status::kNotObserved);
  EXPECT_EQ(finding(judgement, "identity.optimizer").message,
            "the optimizer state on disk has 1 entry that the trainer does not tell, such as the "
            "tensor state.0.exp_avg_sq");
}

TEST(JudgeKinds, ValueForATensorIsTheInstrumentsMistake) {
  Observations seen = healthy();
  StateItem& step = disk(seen).at("step").at("step");
  step = {.digest = mark("int64 5"), .text = "int64[]", .is_tensor = true};
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(causes(judgement), IsEmpty());
  EXPECT_EQ(finding(judgement, "identity.step").message,
            "step: entry step: live it is a value, on disk a tensor (int64[]), so they cannot be "
            "compared; tell it as it is saved");
}

TEST(JudgeKinds, WrongEntryBesideOneOfAnotherKindIsStillWrong) {
  Observations seen = healthy();
  StateItem& count = disk(seen).at("optimizer").at("state.0.step");
  count = {.digest = mark("int64 5"), .text = "int64[]", .is_tensor = true};
  disk(seen).at("optimizer").at("state.0.exp_avg").digest = mark("another");
  EXPECT_EQ(finding(judged(seen), "identity.optimizer").status, Status::kFail);
}

TEST(JudgeKinds, NumberBesideADigestIsShownAsBoth) {
  Observations seen = healthy();
  set_entry(restored(seen), "optimizer", "param_groups.0.weight_decay", "0.2");
  const std::string message = finding(judged(seen), "identity.optimizer").message;
  const auto shown = [](const std::string& text) {
    return "ckv1:" + mark(text).hex().substr(0, 12);
  };
  EXPECT_THAT(message,
              HasSubstr("found " + shown("0.2") + ", expected " + shown("0.1") + " (0.1)"));
}

}  // namespace
}  // namespace ckptverify::scene
