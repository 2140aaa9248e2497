// Every planted fault, as its effects look from outside, gets its own cause first. What follows
// from a fault adds no other cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void set_rates_back(Observations& seen, std::uint64_t by) {
  for (StepEvent* event : steps(*seen.resumed))
    event->lr = step(seen.reference, event->step - by).lr;
}

TEST(JudgeCause, SchedulerLeftOutOfTheCheckpoint) {
  Observations seen = healthy();
  disk(seen).erase("scheduler");
  set_entry(restored(seen), "scheduler", "last_epoch", "0");
  set_rates_back(seen, kSaved);
  part_from(seen, kSaved + 2);
  change_final(seen, "scheduler", "last_epoch");
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(causes(judgement), ElementsAre("sched-lost"));
  EXPECT_EQ(finding(judgement, "identity.scheduler").message,
            "the scheduler state was live at the save (1 entry) and the checkpoint has none of it");
}

TEST(JudgeCause, SchedulerLeftOutOfStateAndCheckpoint) {
  Observations seen = healthy();
  disk(seen).erase("scheduler");
  drop_component(live(seen), "scheduler");
  set_rates_back(seen, kSaved);
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("sched-lost"));
  EXPECT_THAT(finding(judgement, "trajectory.lr").message,
              HasSubstr("at step 6: found 0.001, expected 0.006"));
}

TEST(JudgeCause, RateClobberedByASchedulerBuiltAfterTheLoad) {
  Observations seen = healthy();
  set_entry(restored(seen), "optimizer", "param_groups.0.lr", "lr@0");
  set_entry(restored(seen), "scheduler", "last_epoch", "0");
  set_rates_back(seen, kSaved);
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("sched-lost"));
}

TEST(JudgeCause, ScheduleSavedOneStepEarly) {
  Observations seen = healthy();
  set_rates_back(seen, 1);
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("sched-shift"));
  EXPECT_THAT(finding(judgement, "trajectory.lr").message, HasSubstr("shifted by -1 step"));
  EXPECT_EQ(finding(judgement, "identity.scheduler").status, Status::kPass);
}

TEST(JudgeCause, ScheduleAheadByTwoSteps) {
  Observations seen = healthy();
  for (StepEvent* event : steps(*seen.resumed))
    event->lr = {0.001 * static_cast<double>(event->step + 2)};
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("sched-shift"));
  EXPECT_THAT(finding(judgement, "trajectory.lr").message, HasSubstr("shifted by 2 steps"));
}

TEST(JudgeCause, RatesThatNoShiftExplainAreNotNamed) {
  Observations seen = healthy();
  for (StepEvent* event : steps(*seen.resumed)) event->lr = {0.5};
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(causes(judgement).front().substr(0, 8), "unknown(");
  EXPECT_EQ(finding(judgement, "trajectory.lr").evidence.back().value, "sched-lost, sched-shift");
}

TEST(JudgeCause, OptimizerLeftOutOfTheCheckpoint) {
  Observations seen = healthy();
  disk(seen).erase("optimizer");
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("opt-lost"));
}

TEST(JudgeCause, OptimizerStateNotLoaded) {
  Observations seen = healthy();
  for (const char* path : {"state.0.exp_avg", "state.1.exp_avg", "state.0.step", "state.1.step"})
    drop_entry(restored(seen), "optimizer", path);
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("opt-lost"));
  EXPECT_THAT(finding(judgement, "identity.optimizer").message,
              HasSubstr("entry state.0.exp_avg and 3 more of 6 is in the checkpoint and was not "
                        "restored"));
}

TEST(JudgeCause, OptimizerMomentsRestoredAsZeros) {
  Observations seen = healthy();
  const std::vector<std::byte> zeros(32);  // float32[4, 2]
  const Digest zero = tensor_digest("float32", std::vector<std::uint64_t>{4, 2}, zeros);
  for (StateEntry& entry : restored(seen).components.at("optimizer").entries) {
    if (!entry.dtype.empty()) entry.digest = zero;
    if (entry.path.ends_with(".step")) entry.digest = mark("0");
  }
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("opt-lost"));
}

TEST(JudgeCause, OptimizerStateOnOtherParameters) {
  Observations seen = healthy();
  set_entry(restored(seen), "optimizer", "state.0.exp_avg", at("m1", kSaved));
  set_entry(restored(seen), "optimizer", "state.1.exp_avg", at("m0", kSaved));
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("opt-map"));
  EXPECT_THAT(finding(judgement, "identity.optimizer").message,
              HasSubstr("it equals the checkpoint's optimizer entry state.1.exp_avg"));
}

TEST(JudgeCause, OptimizerGroupsFromTheConfiguration) {
  Observations seen = healthy();
  set_entry(restored(seen), "optimizer", "param_groups.0.weight_decay", "0.01");
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("opt-meta"));
}

TEST(JudgeCause, OptimizerStepCountReset) {
  Observations seen = healthy();
  set_entry(restored(seen), "optimizer", "state.0.step", "0");
  set_entry(restored(seen), "optimizer", "state.1.step", "0");
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("opt-meta"));
}

TEST(JudgeCause, LossScaleReset) {
  Observations seen = healthy();
  set_entry(restored(seen), "scaler", "scale", "65536");
  for (StepEvent* event : steps(*seen.resumed)) event->scale = 65536;
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("scaler"));
}

TEST(JudgeCause, LossScalePartsFirstWithoutStateEvents) {
  Observations seen = healthy();
  drop_events_of_state(*seen.resumed);
  for (StepEvent* event : steps(*seen.resumed)) event->scale = 65536;
  part_from(seen, kSaved + 2);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("scaler"));
}

void part_sources(Observations& seen) {
  for (StepEvent* event : steps(*seen.resumed))
    event->rng["torch"] = mark(at("other source", event->step));
  change_final(seen, "rng", "torch");
}

TEST(JudgeCause, RandomStateLeftOutOfTheCheckpoint) {
  Observations seen = healthy();
  disk(seen).erase("rng");
  part_sources(seen);
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("rng-lost"));
}

TEST(JudgeCause, OneSourceLeftOutOfTheCheckpoint) {
  Observations seen = healthy();
  disk(seen).at("rng").erase("cxx");
  part_sources(seen);
  part_from(seen, kSaved + 1);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("rng-lost"));
  EXPECT_THAT(finding(judgement, "identity.rng").message,
              HasSubstr("entry cxx was live at the save and is not on disk"));
}

TEST(JudgeCause, SourceAsBuiltAfterTheRestore) {
  Observations seen = healthy();
  set_entry(restored(seen), "rng", "torch", at("torch-state", 0));
  part_sources(seen);
  part_from(seen, kSaved + 1);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("rng-lost"));
  EXPECT_THAT(finding(judgement, "identity.rng").message, HasSubstr("it equals the initial state"));
}

TEST(JudgeCause, SourceDrawnFromAfterTheRestore) {
  Observations seen = healthy();
  set_entry(restored(seen), "rng", "torch", "drawn from once more");
  part_sources(seen);
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("rng-drift"));
}

TEST(JudgeCause, SourcePartsAtTheFirstStepAfterARightRestore) {
  Observations seen = healthy();
  part_sources(seen);
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("rng-drift"));
}

TEST(JudgeCause, RandomStateOfAnotherRank) {
  Observations seen = healthy();
  for (auto* digests : {&disk(seen), &seen.reference_saved->digests}) {
    (*digests)["rng.0"] = {{"torch", {mark("rank 0"), "", false}}};
    (*digests)["rng.1"] = {{"torch", {mark("rank 1"), "", false}}};
  }
  for (StateEvent* event : {&live(seen), &restored(seen)}) {
    event->components["rng.0"].entries = {{.path = "torch", .digest = mark("rank 0")}};
    event->components["rng.1"].entries = {{.path = "torch", .digest = mark("rank 1")}};
  }
  set_entry(restored(seen), "rng.1", "torch", "rank 0");
  EXPECT_THAT(causes(judged(seen)), ElementsAre("rng-rank"));
}

void set_batches_back(Observations& seen, std::uint64_t by) {
  for (StepEvent* event : steps(*seen.resumed)) event->batch = mark(at("batch", event->step - by));
}

TEST(JudgeCause, DataStartsOver) {
  Observations seen = healthy();
  set_entry(restored(seen), "data_cursor", "position", "0");
  set_batches_back(seen, kSaved);
  part_from(seen, kSaved + 1);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("data-cursor"));
  EXPECT_EQ(finding(judgement, "data.next_batch").message,
            "the first batch after the restore is the reference's of step 1, expected that of "
            "step 6");
}

TEST(JudgeCause, DataRepeatsABatchAndNothingShowsTheCursor) {
  Observations seen = healthy();
  disk(seen).erase("data_cursor");
  drop_component(live(seen), "data_cursor");
  set_batches_back(seen, 1);
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("data-cursor"));
}

TEST(JudgeCause, DataInAnotherOrderFromTheRightPosition) {
  Observations seen = healthy();
  set_entry(restored(seen), "data_cursor", "shuffle_seed", "18");
  for (StepEvent* event : steps(*seen.resumed)) event->batch = mark(at("reshuffled", event->step));
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("data-order"));
}

TEST(JudgeCause, UnseenBatchesAfterARightCursorAreAnotherOrder) {
  Observations seen = healthy();
  for (StepEvent* event : steps(*seen.resumed)) event->batch = mark(at("reshuffled", event->step));
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("data-order"));
}

TEST(JudgeCause, StateRightAndStepOffByOne) {
  Observations seen = healthy();
  set_entry(restored(seen), "step", "step", "6");
  set_entry(restored(seen), "scheduler", "last_epoch", "6");
  for (Event& event : seen.resumed->trace.events)
    if (auto* restored_event = std::get_if<RestoredEvent>(&event.what)) restored_event->step = 6;
  for (StepEvent* event : steps(*seen.resumed)) ++event->step;
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("step-count"));
  EXPECT_EQ(finding(judgement, "restore.step").message,
            "the state is right and its step is not: restored as step 6, first step 7; expected "
            "step 5 and first step 6");
}

TEST(JudgeCause, StepOffByOneShownByTheLossAlone) {
  Observations seen = healthy();
  drop_events_of_state(*seen.resumed);
  for (StepEvent* event : steps(*seen.resumed)) --event->step;
  EXPECT_THAT(causes(judged(seen)), ElementsAre("step-count"));
}

TEST(JudgeCause, AverageLeftOutOfTheCheckpoint) {
  Observations seen = healthy();
  disk(seen).erase("ema");
  change_final(seen, "ema", "wte");
  EXPECT_THAT(causes(judged(seen)), ElementsAre("ema"));
}

TEST(JudgeCause, AverageRestoredAsTheModel) {
  Observations seen = healthy();
  set_entry(restored(seen), "ema", "wte", at("wte", kSaved));
  change_final(seen, "ema", "wte");
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("ema"));
  EXPECT_THAT(finding(judgement, "identity.ema").message,
              HasSubstr("it equals the checkpoint's model entry"));
}

TEST(JudgeCause, ModelSavedWhileTheAverageIsSwappedIn) {
  Observations seen = healthy();
  for (const char* path : {"wte", "head"})
    disk(seen).at("model").at(path).digest = mark(at("average-wte", kSaved));
  live(seen).components.at("ema").entries.push_back(
      {.path = "head", .digest = mark(at("average-wte", kSaved)), .dtype = "float32"});
  disk(seen).at("ema")["head"] = disk(seen).at("ema").at("wte");
  part_from(seen, kSaved + 1);
  EXPECT_EQ(causes(judged(seen)).front(), "ema");
}

TEST(JudgeCause, WeightsInTheFileAndNotApplied) {
  Observations seen = healthy();
  for (const char* path : {"norm", "bias"}) set_entry(restored(seen), "model", path, at(path, 0));
  part_from(seen, kSaved + 1);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("key-miss"));
  EXPECT_THAT(finding(judgement, "identity.model").message,
              HasSubstr("entry bias and 1 more of 4 was not restored as saved"));
}

TEST(JudgeCause, NoWeightAppliedUnderTheRightStep) {
  Observations seen = healthy();
  for (const char* path : {"norm", "bias"}) set_entry(restored(seen), "model", path, at(path, 0));
  for (const char* path : {"wte", "head"}) set_entry(restored(seen), "model", path, at("wte", 0));
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("key-miss"));
}

TEST(JudgeCause, TiedHeadLeftAsBuilt) {
  Observations seen = healthy();
  set_entry(restored(seen), "model", "head", at("wte", 0));
  part_from(seen, kSaved + 1);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("tied"));
}

TEST(JudgeCause, TiedWeightsRestoredAsTwoTensors) {
  Observations seen = healthy();
  part_from(seen, kSaved + 1);
  change_final(seen, "model", "head");
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement).front(), "tied");
  EXPECT_THAT(finding(judgement, "final.model").message,
              HasSubstr("head and wte are one tensor in the reference and two in the resumed run"));
}

TEST(JudgeCause, TrainerThatIgnoresTheCheckpoint) {
  Observations seen = healthy();
  restart_from_scratch(seen);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_THAT(causes(judgement), ElementsAre("wrong-start"));
  EXPECT_EQ(finding(judgement, "process.restore").message,
            "the resumed process restored nothing and silently trained from scratch");
}

TEST(JudgeCause, TrainerThatIgnoresTheCheckpointShownByTheLossAlone) {
  Observations seen = healthy();
  restart_from_scratch(seen);
  drop_events_of_state(seen.interrupted);
  drop_events_of_state(*seen.resumed);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
}

TEST(JudgeCause, AnotherCheckpointRestored) {
  Observations seen = healthy();
  drop_events_of_state(*seen.resumed);
  for (Event& event : seen.resumed->trace.events)
    if (auto* restored_event = std::get_if<RestoredEvent>(&event.what)) restored_event->step = 3;
  auto& events = seen.resumed->trace.events;
  for (std::uint64_t number : {5U, 4U}) {
    Event event;
    event.role = "trainer";
    event.what = step(seen.reference, number);
    events.insert(events.begin() + 2, event);
  }
  EXPECT_THAT(causes(judged(seen)), ElementsAre("wrong-start"));
}

TEST(JudgeCause, UnexplainedDivergenceNamesTheSuspectsAndNoKind) {
  Observations seen = healthy();
  part_from(seen, kSaved + 2);
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kFail);
  EXPECT_EQ(causes(judgement).front(), "unknown(optimizer)");
  EXPECT_THAT(finding(judgement, "trajectory.loss").evidence.back().value,
              HasSubstr("opt-lost, opt-map"));
}

TEST(JudgeCause, TwoFaultsAreBothNamed) {
  Observations seen = healthy();
  disk(seen).erase("rng");
  set_entry(restored(seen), "scaler", "scale", "65536");
  part_sources(seen);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("scaler", "rng-lost"));
}

}  // namespace
}  // namespace ckptverify::scene
