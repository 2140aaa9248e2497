// The guardian as the harness meets it: what it reports, and that it leaves nothing behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
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
using testing::script;

std::string log_of(const Directory& directory) {
  std::ifstream stream(directory.path() / "log");
  return {std::istreambuf_iterator<char>(stream), {}};
}

RunRecord run_to_end(const Directory& directory, const std::string& text) {
  auto trainer = Supervisor::start(script(directory.path(), text, new_mark()));
  EXPECT_TRUE(trainer) << trainer.error().text();
  EXPECT_EQ(trainer->await_end(20, "its end"), Reached::kGoal);
  return trainer->finish();
}

TEST(Guardian, ReportsTheNativeExitCode) {
  const Directory directory;
  const RunRecord run = run_to_end(directory, "echo out; echo err >&2; exit 9");
  EXPECT_EQ(run.exit.kind, ExitKind::kExited);
  EXPECT_EQ(run.exit.code, 9);
  EXPECT_EQ(run.exit.author, ExitAuthor::kItself);
  EXPECT_EQ(run.kill, KillOutcome::kNotSent);
  EXPECT_EQ(run.processes_killed, 0U);
  EXPECT_EQ(run.log_tail, "out\nerr\n");
}

TEST(Guardian, TellsASignalFromAnExitCode) {
  const Directory directory;
  const RunRecord run = run_to_end(directory, "kill -KILL $$");
  EXPECT_EQ(run.exit.kind, ExitKind::kSignalled);
  EXPECT_EQ(run.exit.signal, SIGKILL);
  EXPECT_EQ(run.exit.author, ExitAuthor::kItself);
}

TEST(Guardian, SaysWhyAProgramCannotStart) {
  const Directory directory;
  SupervisorOptions options = script(directory.path(), "", new_mark());
  options.command = {"/nowhere/trainer"};
  auto trainer = Supervisor::start(options);
  ASSERT_TRUE(trainer);
  EXPECT_EQ(trainer->await_end(20, "its end"), Reached::kGoal);
  const RunRecord run = trainer->finish();
  EXPECT_EQ(run.exit.kind, ExitKind::kNotStarted);
  EXPECT_THAT(run.exit.reason, HasSubstr("/nowhere/trainer"));
  EXPECT_EQ(run.kill, KillOutcome::kNotSent);
}

TEST(Guardian, KillsOrphansInSessionsOfTheirOwn) {
  const Directory directory;
  const std::string mark = new_mark();
  auto trainer = Supervisor::start(script(
      directory.path(),
      "for i in 1 2 3; do setsid sh -c 'setsid sleep 300 & exit' & done; wait; echo up; sleep 300",
      mark));
  ASSERT_TRUE(trainer);
  ASSERT_TRUE(comes_true([&] { return log_of(directory) == "up\n"; }));
  EXPECT_FALSE(trainer->ends_within(0));
  EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
  EXPECT_THAT(marked_processes(mark), IsEmpty());
  const RunRecord run = trainer->finish();
  EXPECT_EQ(run.processes_killed, 5U);  // the shell, its sleep and three orphans
  EXPECT_EQ(run.exit.signal, SIGKILL);
  EXPECT_EQ(run.exit.author, ExitAuthor::kUs);
}

TEST(Guardian, KeepsAndThenKillsWhatATrainerLeavesBehind) {
  const Directory directory;
  const std::string mark = new_mark();
  auto trainer =
      Supervisor::start(script(directory.path(), "setsid sleep 300 & echo $!; exit 3", mark));
  ASSERT_TRUE(trainer);
  EXPECT_EQ(trainer->await_end(20, "its end"), Reached::kGoal);
  EXPECT_FALSE(marked_processes(mark).empty());
  const RunRecord run = trainer->finish();
  EXPECT_EQ(run.exit.code, 3);
  EXPECT_EQ(run.kill, KillOutcome::kNotSent);
  EXPECT_EQ(run.processes_killed, 1U);
  EXPECT_THAT(marked_processes(mark), IsEmpty());
}

TEST(Guardian, SaysThatAKillCameTooLate) {
  const Directory directory;
  auto trainer = Supervisor::start(script(directory.path(), "exit 0", new_mark()));
  ASSERT_TRUE(trainer);
  ASSERT_TRUE(trainer->ends_within(20));
  EXPECT_EQ(trainer->kill(), KillOutcome::kAlreadyGone);
  const RunRecord run = trainer->finish();
  EXPECT_EQ(run.exit.kind, ExitKind::kExited);
  EXPECT_EQ(run.exit.author, ExitAuthor::kItself);
}

/// A harness of our own that is killed by `signal` while its trainer runs.
void harness_dies_by(int signal) {
  const Directory directory;
  const std::string mark = new_mark();
  const pid_t harness = ::fork();
  ASSERT_GE(harness, 0);
  if (harness == 0) {
    ::signal(signal, SIG_DFL);  // a shell's background job is born ignoring SIGINT
    auto trainer =
        Supervisor::start(script(directory.path(), "setsid sleep 300 & echo up; sleep 300", mark));
    while (true) ::pause();
  }
  EXPECT_TRUE(comes_true([&] { return log_of(directory) == "up\n"; }));
  EXPECT_FALSE(marked_processes(mark).empty());
  ::kill(harness, signal);
  EXPECT_EQ(::waitpid(harness, nullptr, 0), harness);
  EXPECT_TRUE(comes_true([&] { return marked_processes(mark).empty(); }));
}

TEST(Guardian, LeavesNothingWhenTheHarnessIsKilled) {
  harness_dies_by(SIGKILL);
}
TEST(Guardian, LeavesNothingWhenTheHarnessIsTerminated) {
  harness_dies_by(SIGTERM);
}
TEST(Guardian, LeavesNothingWhenTheHarnessIsInterrupted) {
  harness_dies_by(SIGINT);
}

TEST(Guardian, KillsWhatForksWhileItIsBeingKilled) {
  const Directory directory;
  const std::string mark = new_mark();
  auto trainer = Supervisor::start(
      script(directory.path(), "echo up; while :; do (setsid sleep 0.05 &) ; done", mark));
  ASSERT_TRUE(trainer);
  ASSERT_TRUE(comes_true([&] { return log_of(directory) == "up\n"; }));
  EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
  EXPECT_THAT(marked_processes(mark), IsEmpty());
}

}  // namespace
}  // namespace ckptverify
