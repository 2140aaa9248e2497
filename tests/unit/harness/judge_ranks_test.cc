// What another rank than the lead tells of its steps is judged by the same rules, and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge.h"
#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kPid = 77;

void tell(RunRecord& run, std::uint32_t rank, decltype(Event::what) what) {
  Event event;
  event.pid = kPid + rank;
  event.rank = rank;
  event.role = "trainer";
  for (const Event& before : run.trace.events) event.seq += before.pid == event.pid ? 1 : 0;
  event.what = std::move(what);
  run.trace.events.push_back(std::move(event));
}

StepEvent own_step(std::uint32_t rank, std::uint64_t number) {
  const std::string name = "rank-" + std::to_string(rank);
  return {.step = number,
          .loss = 2.0 + rank + 1.0 / static_cast<double>(number),
          .lr = {},
          .scale = {},
          .grad_norm = {},
          .batch = mark(at(name + "-batch", number)),
          .rng = {{"torch", mark(at(name + "-source", number))}},
          .data_wait_s = {}};
}

/// Two more ranks that draw their own batches and random numbers.
Observations three_ranks() {
  Observations seen = healthy();
  for (const std::uint32_t rank : {1U, 2U}) {
    for (std::uint64_t number = 1; number <= kFinal; ++number)
      tell(seen.reference, rank, own_step(rank, number));
    for (std::uint64_t number = 1; number <= kSaved; ++number)
      tell(seen.interrupted, rank, own_step(rank, number));
    tell(*seen.resumed, rank, RestoredEvent{"/moved/step-5", kSaved});
    for (std::uint64_t number = kSaved + 1; number <= kFinal; ++number)
      tell(*seen.resumed, rank, own_step(rank, number));
  }
  return seen;
}

/// Of the resumed run.
std::vector<StepEvent*> steps_of(Observations& seen, std::uint32_t rank) {
  std::vector<StepEvent*> found;
  for (Event& event : seen.resumed->trace.events)
    if (auto* step = std::get_if<StepEvent>(&event.what); step != nullptr && event.rank == rank)
      found.push_back(step);
  return found;
}

const Finding* of_subject(const Judgement& judgement, const std::string& check,
                          const std::string& subject) {
  for (const Finding& finding : judgement.findings)
    if (finding.check == check && finding.subject == subject) return &finding;
  return nullptr;
}

TEST(JudgeRanks, AllThatFitSaySoInOneLine) {
  const Judgement judgement = judged(three_ranks());
  EXPECT_EQ(verdict(judgement), Verdict::kPass);
  EXPECT_THAT(finding(judgement, "restore.ranks").message, HasSubstr("2 other ranks"));
}

TEST(JudgeRanks, OneThatBeginsAnewIsNamedThoughItTellsNoRestore) {
  Observations seen = three_ranks();
  std::erase_if(seen.resumed->trace.events, [](const Event& event) { return event.rank == 1; });
  for (std::uint64_t number = 1; number <= kSaved; ++number)
    tell(*seen.resumed, 1, own_step(1, number));
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("wrong-start"));
  const Finding* start = of_subject(judgement, "restore.step", "rank 1");
  ASSERT_NE(start, nullptr);
  EXPECT_THAT(start->message, HasSubstr("rank 1: the resumed run began from scratch"));
}

TEST(JudgeRanks, EachMustRestoreTheStep) {
  Observations seen = three_ranks();
  for (Event& event : seen.resumed->trace.events)
    if (auto* restored = std::get_if<RestoredEvent>(&event.what); restored && event.rank == 2)
      restored->step = 0;
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("wrong-start"));
  EXPECT_NE(of_subject(judgement, "restore.step", "rank 2"), nullptr);
}

TEST(JudgeRanks, ItsBatchesAreItsOwnReferences) {
  Observations seen = three_ranks();
  for (StepEvent* step : steps_of(seen, 2)) step->batch = mark(at("rank-2-batch", step->step - 5));
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), ElementsAre("data-cursor"));
  EXPECT_NE(of_subject(judgement, "data.next_batch", "rank 2"), nullptr);
  EXPECT_EQ(of_subject(judgement, "data.next_batch", "rank 1"), nullptr);
}

TEST(JudgeRanks, TheLeadsRandomNumbersOnAnotherRankAreRngRank) {
  Observations seen = three_ranks();
  for (const std::uint32_t rank : {1U, 2U})
    for (StepEvent* step : steps_of(seen, rank))
      step->rng["torch"] = mark(at("torch-source", step->step));
  const Judgement judgement = judged(seen);
  ASSERT_FALSE(causes(judgement).empty());
  EXPECT_EQ(causes(judgement).front(), "rng-rank");
  const Finding* source = of_subject(judgement, "rng.torch", "rank 1");
  ASSERT_NE(source, nullptr);
  EXPECT_THAT(source->evidence,
              testing::Contains(testing::AllOf(testing::Field(&Evidence::name, "likewise"),
                                               testing::Field(&Evidence::value, "rank 2"))));
}

TEST(JudgeRanks, ALossThatPartsOnOneRankAloneFails) {
  Observations seen = three_ranks();
  steps_of(seen, 1).back()->loss = 7;
  EXPECT_EQ(verdict(judged(seen)), Verdict::kFail);
}

TEST(JudgeRanks, OneThatFallsSilentAfterTheRestoreIsOpen) {
  Observations seen = three_ranks();
  std::erase_if(seen.resumed->trace.events, [](const Event& event) {
    return event.rank == 1 && std::holds_alternative<StepEvent>(event.what);
  });
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
  EXPECT_THAT(finding(judged(seen), "restore.ranks").message, HasSubstr("rank 1 told its steps"));
}

TEST(JudgeRanks, ItsOwnNoiseIsNotHeldAgainstIt) {
  Observations seen = three_ranks();
  for (Event& event : seen.interrupted.trace.events)
    if (auto* step = std::get_if<StepEvent>(&event.what); step != nullptr && event.rank == 1)
      step->batch = mark("shuffled anew");
  for (StepEvent* step : steps_of(seen, 1)) step->batch = mark("shuffled again");
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(JudgeRanks, OneThatDiesOnTheWayIsOpen) {
  Observations seen = three_ranks();
  std::erase_if(seen.resumed->trace.events, [](const Event& event) {
    const auto* step = std::get_if<StepEvent>(&event.what);
    return event.rank == 1 && step != nullptr && step->step > 7;
  });
  EXPECT_EQ(verdict(judged(seen)), Verdict::kInconclusive);
}

TEST(JudgeRanks, OneThatTellsLessThanInTheReferenceIsOpen) {
  Observations seen = three_ranks();
  for (StepEvent* step : steps_of(seen, 2)) step->batch.reset();
  const Judgement judgement = judged(seen);
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  const Finding* batch = of_subject(judgement, "trajectory.batch", "rank 2");
  ASSERT_NE(batch, nullptr);
  EXPECT_THAT(batch->message, HasSubstr("was told in the reference run and not in the resumed"));
}

TEST(JudgeRanks, OneThatTellsStepsAloneMayTellNoLoss) {
  Observations seen = three_ranks();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (Event& event : run->trace.events)
      if (auto* step = std::get_if<StepEvent>(&event.what); step != nullptr && event.rank > 0)
        *step = StepEvent{.step = step->step};
  EXPECT_EQ(verdict(judged(seen)), Verdict::kPass);
}

}  // namespace
}  // namespace ckptverify::scene
