// Holds, deadlines, and what is made of events, on the odd trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/recovery/processes.h"

namespace ckptverify {
namespace {

using testing::comes_true;
using testing::Directory;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::marked_processes;
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

/// For a shell script: that process tells of a save at that step.
std::string tell_save(const Directory& directory, int pid, int step) {
  const std::string file = directory.path() / "events" / (std::to_string(pid) + ".jsonl");
  return R"(echo '{"schema":"ckptverify.event/1","seq":0,"pid":)" + std::to_string(pid) +
         R"(,"rank":0,"world":1,"t_mono_ns":1,"role":"trainer","type":"save_end","path":"/p",)" +
         R"("step":)" + std::to_string(step) + "}' >> '" + file + "'; ";
}

TEST(Supervisor, LetsARankPassThatComesToAHoldWhenItIsOver) {
  const Directory directory;
  const std::string gate = "cat < '" + (directory.path() / "gate").string() + "'; ";
  const std::string passed = (directory.path() / "passed").string();
  // The second rank tells of its save only after the first was let go on; a rank then saves twice.
  SupervisorOptions options =
      script(directory.path(),
             tell_save(directory, 1, 5) + gate + tell_save(directory, 2, 5) + gate +
                 tell_save(directory, 2, 5) + gate + "touch '" + passed + "'; " +
                 tell_save(directory, 1, 10) + gate + "touch '" + passed + "-10'",
             new_mark());
  options.holds = {5, 10};
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  ASSERT_EQ(trainer->await_save({.step = 5}), Reached::kGoal);
  ASSERT_TRUE(trainer->held_at_gate());
  trainer->release();
  ASSERT_EQ(trainer->await_save({.step = 10}), Reached::kGoal);
  EXPECT_TRUE(std::filesystem::exists(passed));
  EXPECT_TRUE(trainer->held_at_gate());
  EXPECT_FALSE(trainer->ends_within(0.05));  // the next hold holds
  EXPECT_FALSE(std::filesystem::exists(passed + "-10"));
  EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
}

TEST(Supervisor, KillsAGuardianThatIsStoppedAndWhatItLeaves) {
  const Directory directory;
  const std::string mark = new_mark();
  // The trainer is in a session of its own; its parent is the guardian.
  SupervisorOptions options =
      script(directory.path(), "setsid sleep 300 & kill -STOP $PPID; exec sleep 300", mark);
  options.deadlines.kill_s = 0.5;
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  ASSERT_TRUE(comes_true([&] { return marked_processes(mark).size() == 3; }));
  EXPECT_EQ(trainer->kill(), KillOutcome::kSurvivors);
  EXPECT_THAT(marked_processes(mark), IsEmpty());
  const RunRecord run = trainer->finish();
  EXPECT_TRUE(run.guardian_stuck);
  EXPECT_FALSE(run.guardian_lost);
  EXPECT_THAT(run.survivors, IsEmpty());
}

TEST(Supervisor, LeavesNoGateBehindHoweverItEnds) {
  const Directory directory;
  const SupervisorOptions options = script(directory.path(), "exec sleep 300", new_mark());
  {
    auto trainer = Supervisor::start(options);
    ASSERT_TRUE(trainer);
    EXPECT_TRUE(std::filesystem::is_fifo(options.gate));
  }
  EXPECT_FALSE(std::filesystem::exists(options.gate));
}

TEST(Supervisor, AsksWhatIsThereAsSoonAsASaveIsAcknowledged) {
  const Directory directory;
  auto trainer = Supervisor::start(
      script(directory.path(), tell_save(directory, 1, 5) + "exec sleep 300", new_mark()));
  ASSERT_TRUE(trainer);
  std::string told;
  SaveGoal goal{.step = 5};
  goal.on_acknowledged = [&](const std::string& path) {
    told = path;
    EXPECT_FALSE(trainer->held_at_gate());
  };
  ASSERT_EQ(trainer->await_save(goal), Reached::kGoal);
  EXPECT_EQ(told, "/p");
}

TEST(Supervisor, WaitsForASaveWhoseWriterPauses) {
  const Directory directory;
  const std::string checkpoint = (directory.path() / "checkpoint").string();
  auto trainer = Supervisor::start(script(directory.path(),
                                          "mkdir '" + checkpoint + "'; echo 1 > '" + checkpoint +
                                              "/weights'; sleep 0.4; echo 2 > '" + checkpoint +
                                              "/optimizer'; exec sleep 300",
                                          new_mark()));
  ASSERT_TRUE(trainer);
  SaveGoal goal{.step = 5, .path = checkpoint};
  goal.complete = [] { return true; };  // as a reader says of weights alone
  ASSERT_EQ(trainer->await_save(goal), Reached::kGoal);
  EXPECT_TRUE(std::filesystem::exists(checkpoint + "/optimizer"));
}

TEST(Supervisor, TakesNoOldSaveForANewOneWhereThePathStaysTheSame) {
  const Directory directory;
  const std::string checkpoint = (directory.path() / "checkpoint").string();
  const std::string go = (directory.path() / "go").string();
  auto trainer = Supervisor::start(script(directory.path(),
                                          "echo 5 > '" + checkpoint + "'; while [ ! -e '" + go +
                                              "' ]; do sleep 0.01; done; sleep 1.5; echo 10 > '" +
                                              checkpoint + "'; exec sleep 300",
                                          new_mark()));
  ASSERT_TRUE(trainer);
  SaveGoal goal{.step = 5, .path = checkpoint};
  goal.complete = [] { return true; };
  ASSERT_EQ(trainer->await_save(goal), Reached::kGoal);
  trainer->release();
  std::ofstream(go) << "go";
  goal.step = 10;
  ASSERT_EQ(trainer->await_save(goal), Reached::kGoal);
  EXPECT_EQ(std::filesystem::file_size(checkpoint), 3U);  // "10\n"
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
