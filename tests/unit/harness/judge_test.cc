// What a pass needs, what identity sees, and waivers.
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
  EXPECT_THAT(judgement.not_proven,
              ElementsAre("identity.model, identity.optimizer, identity.scheduler, "
                          "identity.scaler, identity.step, identity.rng, identity.data_cursor, "
                          "identity.ema: the state was not seen live at the save, live after the "
                          "restore"));
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

/// In every checkpoint and every told save.
void rng_stands_still(Observations& seen) {
  const auto still = state(kSaved).at("rng");
  for (auto* saved :
       {&seen.reference_saved, &seen.interrupted_saved, &seen.reference_final, &seen.resumed_final})
    (*saved)->digests["rng"] = still;
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (Event& event : run->trace.events)
      if (auto* told = std::get_if<StateEvent>(&event.what); told && told->at == StateMoment::kSave)
        for (StateEntry& entry : told->components.at("rng").entries)
          entry.digest = still.at(entry.path).digest;
}

TEST(Judge, RandomStateThatNothingDrawsFromIsNotApplicable) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run))
      event->rng = {{"torch", mark("still")}, {"cxx", mark("still")}};
  rng_stands_still(seen);
  set_entry(restored(seen), "rng", "torch", "other");
  change_final(seen, "rng", "torch");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "identity.rng").status, Status::kNotApplicable);
  EXPECT_EQ(finding(judgement, "final.rng").status, Status::kNotApplicable);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
}

TEST(Judge, RandomStateThatMovesOnDiskIsUsedWhateverTheStepsTell) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run))
      event->rng = {{"torch", mark("still")}, {"cxx", mark("still")}};
  set_entry(restored(seen), "rng", "torch", "other");
  EXPECT_EQ(finding(judged(seen), "identity.rng").status, Status::kFail);
  for (auto* saved : {&seen.reference_saved, &seen.reference_final})
    (*saved)->digests["rng"].at("torch").root = "rng.";
  seen.final_difference.emplace();
  seen.final_difference->differences = {
      {.path = "rng.torch", .component = Component::kRng, .kind = DifferenceKind::kValue}};
  EXPECT_EQ(finding(judged(seen), "final.rng").status, Status::kFail);
}

TEST(Judge, RandomStateOfASourceThatNobodyTellsIsNotUnused) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run)) event->rng = {{"another", mark("still")}};
  set_entry(restored(seen), "rng", "torch", "other");
  change_final(seen, "rng", "torch");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "identity.rng").status, Status::kFail);
  EXPECT_EQ(finding(judgement, "final.rng").status, Status::kFail);
}

TEST(Judge, RandomStateThatWasDrawnFromBeforeTheSaveIsNotUnused) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (StepEvent* event : steps(*run))
      event->rng = {{"torch", mark(event->step < kSaved ? "before" : "still")}};
  set_entry(restored(seen), "rng", "torch", "other");
  EXPECT_EQ(finding(judged(seen), "identity.rng").status, Status::kFail);
}

// What lies outside of the known components.

StateItem& other_at_end(CheckpointRecord& record, const std::string& path) {
  return record.digests["other"][path];
}

TEST(Judge, TensorsOutsideOfTheKnownComponentsMayBeASecondNetwork) {
  Observations seen = healthy();
  other_at_end(*seen.reference_final, "netD.weight") = {
      .digest = mark("10"), .text = "", .is_tensor = true};
  other_at_end(*seen.resumed_final, "netD.weight") = {
      .digest = mark("5"), .text = "", .is_tensor = true};
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "final.other").status, Status::kFail);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
}

TEST(Judge, ValuesOutsideOfTheKnownComponentsMayDifferAndNobodyCallsThemEqual) {
  Observations seen = healthy();
  other_at_end(*seen.reference_final, "saved_at") = {.digest = mark("noon"), .text = ""};
  other_at_end(*seen.resumed_final, "saved_at") = {.digest = mark("night"), .text = ""};
  const Judgement judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "final.other").status, Status::kWarn);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_EQ(judgement.proven.back(),
            "the checkpoints at step 10 are equal entry by entry in model, optimizer, scheduler, "
            "scaler, step, rng, data_cursor, ema; not in other");
}

TEST(Judge, ValuesThatTheTrainerTellsAsItsStateMayNotDifferWhateverTheyAreCalled) {
  Observations seen = healthy();
  live(seen).components["callbacks"].entries = {{.path = "best", .digest = mark("3")}};
  other_at_end(*seen.reference_final, "callbacks.best") = {.digest = mark("3"), .text = ""};
  other_at_end(*seen.resumed_final, "callbacks.best") = {.digest = mark("0"), .text = ""};
  EXPECT_EQ(finding(judged(seen), "final.other").status, Status::kFail);
}

TEST(Judge, CheckpointsWithoutAModelProveNothing) {
  Observations seen = healthy();
  drop_events_of_state(seen.interrupted);
  drop_events_of_state(*seen.resumed);
  for (auto* record :
       {&seen.reference_saved, &seen.interrupted_saved, &seen.reference_final, &seen.resumed_final})
    std::erase_if((*record)->digests, [](const auto& item) { return item.first != "step"; });
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(Judge, StateThatTheLaterSaveOfBothRunsLacksIsLost) {
  Observations seen = healthy();
  for (auto* record : {&seen.reference_final, &seen.resumed_final})
    (*record)->digests.erase("optimizer");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(causes(judgement), std::vector<std::string>{"opt-lost"});
  EXPECT_THAT(finding(judgement, "final.optimizer").message,
              HasSubstr("neither checkpoint of step 10 has any optimizer state"));
}

TEST(Judge, AModelThatDoesNotMoveProvesNothingByBeingEqual) {
  Observations seen = healthy();
  drop_events_of_state(seen.interrupted);
  drop_events_of_state(*seen.resumed);
  drop_events_of_state(seen.reference);
  for (auto* record : {&seen.reference_final, &seen.resumed_final})
    (*record)->digests["model"] = seen.reference_saved->digests["model"];
  EXPECT_EQ(finding(judged(seen), "final.model").status, Status::kNotObserved);
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(Judge, ObjectsThatNobodyComparesAreNotCalledEqual) {
  Observations seen = healthy();
  for (auto* record : {&seen.reference_final, &seen.resumed_final})
    (*record)->opaque["optimizer"] = {"state (optax.ScaleByAdamState)"};
  Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  EXPECT_THAT(finding(judgement, "final.optimizer").message,
              HasSubstr("1 object of a class that is not modelled could not be compared, the first "
                        "is state (optax.ScaleByAdamState)"));
  seen = healthy();
  for (auto* record : {&seen.reference_final, &seen.resumed_final})
    (*record)->opaque["config"] = {"arguments (argparse.Namespace)"};
  judgement = judged(seen);
  EXPECT_EQ(finding(judgement, "final.config").status, Status::kWarn);
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  for (auto* record : {&seen.reference_final, &seen.resumed_final})
    (*record)->opaque = {{"other", {"sampler (random.Random)"}}};
  EXPECT_EQ(finding(judged(seen), "final.other").status, Status::kInconclusive);
}

TEST(Judge, FilesThatNobodyReadsAreComparedAsBytes) {
  Observations seen = healthy();
  for (auto* record : {&seen.reference_final, &seen.resumed_final})
    (*record)->unread = {{"sampler.txt", mark("80")}, {"notes.txt", mark("same")}};
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
  seen.resumed_final->unread["sampler.txt"] = mark("40");
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(finding(judged(seen), "final.files").message,
              HasSubstr("1 file differs that no reader looks into, the first is sampler.txt"));
}

TEST(Judge, WhatMayLieInAnUnreadFileOrObjectIsNotCalledMissing) {
  for (const bool file : {true, false}) {
    Observations seen = healthy();
    disk(seen).erase("optimizer");
    if (file)
      seen.interrupted_saved->unread = {{"optimizer.bin", mark("optimizer")}};
    else
      seen.interrupted_saved->opaque["optimizer"] = {"state (optax.ScaleByAdamState)"};
    EXPECT_EQ(finding(judged(seen), "identity.optimizer").status, Status::kInconclusive);
  }
}

TEST(Judge, TensorsAmongTheSettingsAreNoSettings) {
  Observations seen = healthy();
  const StateItem before{.digest = mark("mask"), .text = "", .is_tensor = true};
  const StateItem after{.digest = mark("another"), .text = "", .is_tensor = true};
  seen.reference_final->digests["config"]["mask"] = before;
  seen.resumed_final->digests["config"]["mask"] = after;
  EXPECT_EQ(finding(judged(seen), "final.config").status, Status::kFail);
  seen = healthy();
  StateEntry told{.path = "mask", .digest = mark("mask"), .dtype = "float32", .shape = {1}};
  disk(seen)["config"]["mask"] = before;
  live(seen).components["config"].entries = {told};
  told.digest = mark("another");
  restored(seen).components["config"].entries = {told};
  EXPECT_EQ(finding(judged(seen), "identity.config").status, Status::kFail);
}

TEST(Judge, WaivedWeightsOrOptimizerAreNoEvidence) {
  for (const char* component : {"model", "optimizer"}) {
    Observations seen = healthy();
    drop_events_of_state(seen.interrupted);
    drop_events_of_state(*seen.resumed);
    change_final(seen, component, component == std::string("model") ? "norm" : "state.0.exp_avg");
    Plan waiving = plan();
    waiving.waivers = {{.check = std::string("final.") + component, .reason = "a trial"}};
    const Judgement judgement = judge(waiving, seen);
    EXPECT_EQ(finding(judgement, std::string("final.") + component).status, Status::kWaived);
    EXPECT_EQ(verdict(judgement), Verdict::kInconclusive) << component;
  }
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
