// Wait statuses of real processes: exit(9) and SIGKILL are told apart.
#include "ckptverify/exit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace ckptverify {
namespace {

/// The native wait status of a child that runs `body`, which must not return.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(99);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(ExitFromWaitStatus, ExitNineIsNoKill) {
  const int status = status_of_child([] { ::_exit(9); });
  const Exit exit = exit_from_wait_status(status, ExitAuthor::kUs);
  EXPECT_EQ(exit.kind, ExitKind::kExited);
  EXPECT_EQ(exit.code, 9);
  EXPECT_EQ(exit.author, ExitAuthor::kItself);
  EXPECT_EQ(exit.text(), "exit 9");
}

TEST(ExitFromWaitStatus, SigkillIsSignalNine) {
  const int status = status_of_child([] { ::raise(SIGKILL); });
  const Exit exit = exit_from_wait_status(status, ExitAuthor::kUs);
  EXPECT_EQ(exit.kind, ExitKind::kSignalled);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.text(), "signal 9 (KILL), sent by us");
}

TEST(ExitFromWaitStatus, ASignalOfItsOwnIsNotOurs) {
  const int status = status_of_child([] {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
  });
  EXPECT_EQ(exit_from_wait_status(status, ExitAuthor::kItself).text(), "signal 11 (SEGV)");
}

TEST(ExitFromWaitStatus, CodesAbove127StayCodes) {
  const int status = status_of_child([] { ::_exit(137); });
  EXPECT_EQ(exit_from_wait_status(status, ExitAuthor::kUs).text(), "exit 137");
}

TEST(ExitFromWaitStatusDeathTest, AStoppedProcessHasNotEnded) {
  const int stopped = 0x137f;  // stopped by signal 19
  ASSERT_TRUE(WIFSTOPPED(stopped));
  EXPECT_EXIT(exit_from_wait_status(stopped, ExitAuthor::kUs), testing::ExitedWithCode(70), "");
}

TEST(ExitText, DeadlinesAndStartsGiveTheirReason) {
  EXPECT_EQ(
      (Exit{.kind = ExitKind::kTimedOut, .reason = "deadline of 60 s at the first step"}).text(),
      "deadline of 60 s at the first step");
  EXPECT_EQ((Exit{.kind = ExitKind::kNotStarted, .reason = "no such program"}).text(),
            "not started: no such program");
  EXPECT_EQ(Exit{}.text(), "not started");
}

}  // namespace
}  // namespace ckptverify
