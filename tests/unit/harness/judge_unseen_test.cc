// What is said where a trainer tells nothing or too little: no claim beyond what was seen, and what
// there was instead of a save that did not come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge.h"
#include "tests/unit/harness/judge_scene.h"

namespace ckptverify::scene {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Observations without_events() {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed}) {
    run->trace.events.clear();
  }
  for (auto* run : {&seen.fresh_eval, &seen.reference_eval, &seen.resumed_eval}) run->reset();
  return seen;
}

TEST(JudgeUnseen, WithoutEventsNoRestoreAndNoAcknowledgementIsClaimed) {
  const Judgement judgement = judged(without_events());
  EXPECT_EQ(verdict(judgement), Verdict::kInconclusive);
  const Finding restore = finding(judgement, "process.restore");
  EXPECT_EQ(restore.status, Status::kNotObserved);
  EXPECT_EQ(restore.message,
            "a fresh process was given the moved copy and wrote its checkpoint of step 10; it told "
            "no step, so whether it restored was not seen");
  EXPECT_EQ(finding(judgement, "process.continue").message,
            "the resumed run wrote its checkpoint of step 10");
  EXPECT_EQ(finding(judgement, "process.reference").message,
            "the reference run wrote its checkpoint of step 10");
  EXPECT_EQ(finding(judgement, "process.save").message,
            "every save was where the plan says; none was acknowledged, so they were seen by their "
            "files alone");
}

TEST(JudgeUnseen, WhatIsMissingComesFirstAndOneReasonIsSaidOnce) {
  const std::vector<std::string> sentences = judged(without_events()).not_proven;
  EXPECT_THAT(sentences.front(),
              AllOf(StartsWith("verdict.evidence: nothing failed, and a pass is not proven"),
                    EndsWith("only a trainer that tells events can show it "
                             "(docs/trainer-contract.md)")));
  EXPECT_THAT(sentences,
              Contains(AllOf(StartsWith("process.trace, identity.model, identity.optimizer, "),
                             EndsWith(": the trainers wrote no events, so nothing inside them was "
                                      "seen; docs/trainer-contract.md says how they tell it"))));
  for (const char* check : {"identity.rng: ", "restore.step: ", "trajectory.loss: "})
    EXPECT_THAT(sentences, Not(Contains(StartsWith(check))));
}

TEST(JudgeUnseen, SecondSaveOfTheRestoredStepSuggestsAStartFromScratch) {
  Observations seen = without_events();
  seen.resumed_saved_again = true;
  const Finding restore = finding(judged(seen), "process.restore");
  EXPECT_EQ(restore.status, Status::kInconclusive);
  EXPECT_THAT(restore.message, HasSubstr("wrote a checkpoint of step 5 again"));
}

TEST(JudgeUnseen, SecondSaveBeforeAnotherEndIsWhatFailed) {
  Observations seen = without_events();
  seen.resumed_saved_again = true;
  change_final(seen, "model", "norm");
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement).front(), "unknown(step)");
  EXPECT_EQ(finding(judgement, "process.restore").evidence.back().value, "wrong-start, step-count");
}

TEST(JudgeUnseen, WhatIsRightInTheEndIsNotLeftToSuspect) {
  Observations seen = without_events();
  change_final(seen, "model", "norm");
  change_final(seen, "optimizer", "state.0.exp_avg");
  const std::string suspects = finding(judged(seen), "final.model").evidence.back().value;
  EXPECT_THAT(suspects, HasSubstr("identity.optimizer"));
  EXPECT_THAT(suspects, Not(HasSubstr("identity.rng")));
}

TEST(JudgeUnseen, StateThatNobodyShowsIsSaidNotToBeProven) {
  Observations seen = without_events();
  for (auto* saved :
       {&seen.reference_saved, &seen.interrupted_saved, &seen.reference_final, &seen.resumed_final})
    (*saved)->digests.erase("optimizer");
  EXPECT_THAT(judged(seen).not_proven,
              Contains(StartsWith("the checkpoint has no state of: optimizer; what the trainer")));
}

TEST(JudgeUnseen, FirstStepWithoutARestoredEventClaimsNoRestore) {
  Observations seen = healthy();
  drop_restored_event(*seen.resumed);
  EXPECT_EQ(finding(judged(seen), "process.restore").message,
            "a fresh process was given the moved copy and took its first step");
}

Observations reference_missed(const MissedSave& missed) {
  Observations seen = without_events();
  seen.reference.held_at.reset();
  seen.reference.missed_save = missed;
  seen.reference.exit = exited(0);
  seen.interrupted = {};
  seen.resumed.reset();
  seen.interrupted_saved.reset();
  return seen;
}

TEST(JudgeUnseen, PathThatHeldNothingIsNamedWithWhatWasThere) {
  const Judgement judgement = judged(reference_missed(
      {.step = kSaved, .path = "/run/checkpoints/step-5", .files = "out/5.pt, out/10.pt"}));
  const std::string instead =
      "no whole checkpoint was at /run/checkpoints/step-5, where the plan's checkpoints.path says; "
      "the run's directory holds out/5.pt, out/10.pt";
  EXPECT_EQ(finding(judgement, "process.reference").message,
            "the reference run came to no save at step 5 (exit 0): " + instead);
  EXPECT_EQ(finding(judgement, "process.save").message, "no save was seen: " + instead);
}

TEST(JudgeUnseen, StepWithoutASaveIsNamedBesideThoseThatWereTold) {
  Observations seen = reference_missed({.step = 4, .path = "/run/step-4", .files = "step-5"});
  seen.save_step = 4;
  seen.reference.trace = healthy().reference.trace;
  EXPECT_EQ(finding(judged(seen), "process.reference").message,
            "the reference run came to no save at step 4 (exit 0): saves were told at steps 5, 10 "
            "and none at step 4, which is the plan's; correct its [steps], or where the trainer "
            "saves");
}

TEST(JudgeUnseen, KillThatLandedBeforeTheSaveProvesNothing) {
  Observations seen = healthy();
  seen.interrupted.held_at.reset();
  seen.interrupted.overdue = "the save at step 5";
  EXPECT_EQ(finding(judged(seen), "process.kill").status, Status::kInconclusive);
}

TEST(JudgeUnseen, KillThatCameTooLateSaysWhatHelps) {
  Observations seen = healthy();
  seen.interrupted.kill = KillOutcome::kAlreadyGone;
  seen.interrupted.exit = exited(0);
  const std::string message = finding(judged(seen), "process.kill").message;
  EXPECT_THAT(message, HasSubstr("give it more steps or longer ones after that save"));
  EXPECT_THAT(message, HasSubstr("docs/trainer-contract.md"));
}

TEST(JudgeUnseen, CommandOfAStartFromScratchIsWhole) {
  Observations seen = healthy();
  restart_from_scratch(seen);
  seen.resumed->command = {"python3", "/my trainer/train.py", "--bug", "ignore"};
  EXPECT_EQ(finding(judged(seen), "process.restore").evidence.front().value,
            "python3 '/my trainer/train.py' --bug ignore");
}

TEST(JudgeUnseen, PartingWithoutACauseListsWhatWasNotObserved) {
  Observations seen = healthy();
  part_from(seen, 7);
  for (RunRecord* run : {&seen.interrupted, &*seen.resumed}) drop_events_of_state(*run);
  const Judgement judgement = judged(seen);
  EXPECT_THAT(causes(judgement), Not(IsEmpty()));
  const Finding final = finding(judgement, "final.model");
  ASSERT_EQ(final.status, Status::kFail);
  EXPECT_EQ(final.evidence.back().name, "not observed, so left to suspect");
  EXPECT_THAT(final.evidence.back().value, HasSubstr("identity.optimizer"));
}

// A trainer without a data loader draws its batches from random numbers.

TEST(JudgeUnseen, BatchesDrawnFromLostRandomNumbersHaveNoCauseOfTheirOwn) {
  Observations seen = healthy();
  for (RunRecord* run : {&seen.reference, &seen.interrupted, &*seen.resumed})
    for (Event& event : run->trace.events)
      if (auto* state = std::get_if<StateEvent>(&event.what))
        state->components.erase("data_cursor");
  for (auto* saved :
       {&seen.reference_saved, &seen.interrupted_saved, &seen.reference_final, &seen.resumed_final})
    (*saved)->digests.erase("data_cursor");
  for (const char* source : {"torch", "cxx"})
    set_entry(restored(seen), "rng", source, at(std::string(source) + "-state", 0));
  for (StepEvent* event : steps(*seen.resumed)) {
    event->batch = step(seen.reference, event->step - kSaved).batch;
    event->rng = step(seen.reference, event->step - kSaved).rng;
  }
  part_from(seen, 6);
  EXPECT_THAT(causes(judged(seen)), ElementsAre("rng-lost"));
}

}  // namespace
}  // namespace ckptverify::scene
