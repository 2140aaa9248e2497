// Holds, deadlines, and what is made of events, on the odd trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/recovery/processes.h"

namespace ckptverify {
namespace {

using testing::Directory;
using ::testing::HasSubstr;
using testing::new_mark;
using testing::odd_trainer;
using testing::script;

std::vector<std::uint64_t> steps(const Trace& trace) {
  std::vector<std::uint64_t> all;
  for (const Event& event : trace.events) {
    if (const auto* step = std::get_if<StepEvent>(&event.what)) all.push_back(step->step);
  }
  return all;
}

TEST(Supervisor, HoldsAtASaveReleasesAndHoldsAgain) {
  const Directory directory;
  SupervisorOptions options = odd_trainer(
      directory.path(), {"train", "--run-dir", (directory.path() / "run").string()}, new_mark());
  options.holds = {5, 10};
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer) << trainer.error().text();
  ASSERT_EQ(trainer->await_save({.step = 5}), Reached::kGoal);
  EXPECT_TRUE(trainer->held_at_gate());
  EXPECT_FALSE(trainer->ends_within(0.05));  // it trains no further while it is held
  EXPECT_EQ(steps(trainer->trace()).back(), 5U);
  trainer->release();
  ASSERT_EQ(trainer->await_save({.step = 10}), Reached::kGoal);
  EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
  const RunRecord run = trainer->finish();
  EXPECT_EQ(steps(run.trace), (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(run.held_at, 10U);
  EXPECT_EQ(run.processes_killed, 1U);
  EXPECT_TRUE(run.trace.garbled.empty());
  EXPECT_EQ(run.exit.text(), "signal 9 (KILL), sent by us");
}

TEST(Supervisor, StopsATrainerThatHonoursNoHold) {
  const Directory directory;
  SupervisorOptions options = odd_trainer(
      directory.path(),
      {"train", "--run-dir", (directory.path() / "run").string(), "--steps", "100000"}, new_mark());
  options.holds = {};  // so that the trainer is told of none
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  ASSERT_EQ(trainer->await_save({.step = 5}), Reached::kGoal);
  EXPECT_FALSE(trainer->held_at_gate());
  (void)trainer->ends_within(0);
  const std::uint64_t stopped_at = steps(trainer->trace()).back();
  EXPECT_FALSE(trainer->ends_within(0.05));
  EXPECT_EQ(steps(trainer->trace()).back(), stopped_at);
  trainer->release();
  ASSERT_EQ(trainer->await_save({.step = (stopped_at / 5 + 2) * 5}), Reached::kGoal);
  EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
}

TEST(Supervisor, NamesTheStepThatIsOverdue) {
  const Directory directory;
  SupervisorOptions options = script(directory.path(), "exec sleep 300", new_mark());
  options.deadlines.start_s = 0.2;
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  EXPECT_EQ(trainer->await_save({.step = 5}), Reached::kOverdue);
  const RunRecord run = trainer->finish();
  EXPECT_EQ(run.overdue, "the first event");
  EXPECT_EQ(run.exit.kind, ExitKind::kTimedOut);
  EXPECT_EQ(run.exit.text(), "deadline of 0.2 s at the first event");
  EXPECT_EQ(run.kill, KillOutcome::kConfirmed);
  EXPECT_EQ(run.processes_killed, 1U);
}

TEST(Supervisor, KeepsGarbledLinesApartFromEvents) {
  const Directory directory;
  const std::string line =
      R"({"schema":"ckptverify.event/1","seq":0,"pid":7,"rank":0,"world":1,"t_mono_ns":1,)"
      R"("role":"trainer","type":"step","step":1})";
  const std::string file = (directory.path() / "events" / "a.jsonl").string();
  auto trainer = Supervisor::start(script(directory.path(),
                                          "printf '%s\\n' '" + line + "' 'no json' '" + line +
                                              "' > " + file + "; printf half >> " + file,
                                          new_mark()));
  ASSERT_TRUE(trainer);
  ASSERT_EQ(trainer->await_end(20, "its end"), Reached::kGoal);
  const RunRecord run = trainer->finish();
  EXPECT_EQ(steps(run.trace), (std::vector<std::uint64_t>{1, 1}));
  ASSERT_EQ(run.trace.garbled.size(), 2U);
  EXPECT_EQ(run.trace.garbled[0].file, "a.jsonl");
  EXPECT_EQ(run.trace.garbled[0].line, 2U);
  EXPECT_EQ(run.trace.garbled[1].line, 4U);
  EXPECT_THAT(run.trace.garbled[1].reason, HasSubstr("no end"));
}

TEST(Supervisor, TakesACheckpointThatStaysAsASaveWhereNothingIsTold) {
  const Directory directory;
  SupervisorOptions options =
      odd_trainer(directory.path(),
                  {"train", "--run-dir", (directory.path() / "run").string(), "--steps", "100000",
                   "--step-us", "1000", "--behave", "no-events"},
                  new_mark());
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  const auto checkpoint = directory.path() / "run" / "checkpoints" / "step-10";
  SaveGoal goal{.step = 10, .path = checkpoint};
  goal.complete = [&] { return std::filesystem::exists(checkpoint / "index.json"); };
  ASSERT_EQ(trainer->await_save(goal), Reached::kGoal);
  EXPECT_TRUE(trainer->trace().events.empty());
  EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
  EXPECT_EQ(trainer->finish().held_at, 10U);
}

TEST(Supervisor, StopsWhenTheUserWantsTo) {
  const Directory directory;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  SupervisorOptions options = script(directory.path(), "exec sleep 300", new_mark());
  options.interrupt = ends[0];
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(trainer->await_save({.step = 5}), Reached::kInterrupted);
  const RunRecord run = trainer->finish();
  EXPECT_EQ(run.kill, KillOutcome::kConfirmed);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace ckptverify
