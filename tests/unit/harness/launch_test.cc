// A program is started exactly as told, and what cannot be started says why.
#include "harness/launch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "harness/descriptor.h"

namespace ckptverify {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Standard output and the wait status of a shell script.
struct Outcome {
  std::string output;
  int status = 0;
};

Outcome run(Launch launch_options) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  launch_options.standard_output = writer.number();
  const auto pid = launch(launch_options);
  EXPECT_TRUE(pid) << pid.error().text();
  writer.close();
  Outcome outcome;
  std::array<char, 256> buffer;
  for (ssize_t count; (count = ::read(reader.number(), buffer.data(), buffer.size())) > 0;) {
    outcome.output.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (pid) {
    EXPECT_EQ(::waitpid(*pid, &outcome.status, 0), *pid);
  }
  return outcome;
}

Launch script(const std::string& text) {
  Launch launch_options;
  launch_options.command = {"sh", "-c", text};
  launch_options.environment = {"PATH=/usr/bin:/bin", "GIVEN=yes"};
  return launch_options;
}

TEST(Launch, GivesTheEnvironmentAndNoMore) {
  EXPECT_EQ(run(script("echo \"$GIVEN.$HOME.\"")).output, "yes..\n");
}

TEST(Launch, GivesTheWorkingDirectory) {
  Launch options = script("pwd");
  options.working_directory = "/usr";
  EXPECT_EQ(run(options).output, "/usr\n");
}

TEST(Launch, LeavesTheWaitStatusToTheCaller) {
  const Outcome outcome = run(script("exit 9"));
  EXPECT_TRUE(WIFEXITED(outcome.status));
  EXPECT_EQ(WEXITSTATUS(outcome.status), 9);
}

TEST(Launch, PassesOnOnlyTheDescriptorsThatAreNamed) {
  const Descriptor kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor hidden(::open("/dev/null", O_RDONLY));  // forgotten O_CLOEXEC
  // No pipeline and no listing: a shell has descriptors of its own while it makes those.
  const auto is_open = [](const Descriptor& descriptor) {
    return "[ -e /proc/$$/fd/" + std::to_string(descriptor.number()) +
           " ] && echo open || echo closed";
  };
  Launch options = script(is_open(kept) + "; " + is_open(hidden));
  options.inherited = {kept.number()};
  EXPECT_EQ(run(options).output, "open\nclosed\n");
}

TEST(Launch, StartsASessionWhereAsked) {
  Launch options = script("[ $(cut -d' ' -f6 /proc/$$/stat) -eq $$ ] && echo own || echo shared");
  EXPECT_EQ(run(options).output, "shared\n");
  options.session = ProcessSession::kOwn;
  EXPECT_EQ(run(options).output, "own\n");
}

TEST(Launch, UnblocksSignals) {
  sigset_t set;
  sigset_t before;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &set, &before), 0);
  const Outcome outcome = run(script("kill -TERM $$; echo survived"));
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_TRUE(WIFSIGNALED(outcome.status));
  EXPECT_EQ(outcome.output, "");
}

TEST(Launch, SaysWhatCannotBeStarted) {
  Launch options = script("");
  options.command = {"no-such-program-anywhere"};
  const auto in_path = launch(options);
  ASSERT_FALSE(in_path);
  EXPECT_THAT(in_path.error().text(), StartsWith("no-such-program-anywhere: "));
  options.command = {"/etc/passwd"};
  const auto not_executable = launch(options);
  ASSERT_FALSE(not_executable);
  EXPECT_THAT(not_executable.error().text(), HasSubstr("Permission denied"));
  options = script("");
  options.working_directory = "/nowhere";
  const auto no_directory = launch(options);
  ASSERT_FALSE(no_directory);
  EXPECT_THAT(no_directory.error().text(), HasSubstr("No such file or directory"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left unreaped";
}

TEST(Launch, DropsVariablesByPrefix) {
  ::setenv("CKPTVERIFY_LAUNCH_TEST", "1", 1);
  for (const std::string& line : inherited_environment({"CKPTVERIFY_"})) {
    EXPECT_FALSE(line.starts_with("CKPTVERIFY_")) << line;
  }
  ::unsetenv("CKPTVERIFY_LAUNCH_TEST");
}

}  // namespace
}  // namespace ckptverify
