// Programs of a plan's commands, before anything is started.
#include "harness/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace ckptverify {
namespace {

using ::testing::EndsWith;

class Program : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "ckptverify-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    for (const char* file : {"trainer", "data"}) std::ofstream(directory_ / file) << "#!/bin/sh\n";
    std::filesystem::permissions(directory_ / "trainer", std::filesystem::perms::owner_all);
    plan_.file = directory_ / "plan.toml";
    plan_.variables["plan_dir"] = directory_.string();
    plan_.environment["PATH"] = "/nowhere:" + directory_.string();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  Plan plan_;
};

TEST_F(Program, IsFoundByItsPathAndInThePathOfThePlan) {
  EXPECT_TRUE(check_program(plan_, {"{plan_dir}/trainer", "train"}));
  EXPECT_TRUE(check_program(plan_, {"trainer"}));
}

TEST_F(Program, IsWrongUsageWhereItIsAWholeCommandInOneWord) {
  for (const char* word : {"trainer train", "trainer train {run_dir}"}) {
    const auto checked = check_program(plan_, {word});
    ASSERT_FALSE(checked) << word;
    EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(checked.error().text(), testing::HasSubstr("a command is a list of its words"));
  }
}

TEST_F(Program, IsWrongUsageWhereItIsRelative) {
  plan_.train = {"trainer"};
  plan_.resume = {"./trainer", "{checkpoint}"};
  const auto checked = check_programs(plan_);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(checked.error().text(),
            plan_.file.string() +
                ": resume: ./trainer: relative, and every phase starts in a directory of its own: "
                "begin it with {plan_dir}");
}

TEST_F(Program, IsUnreadableWhereItIsNotThereOrCannotBeExecuted) {
  const auto mistake = [this](const CommandTemplate& command) {
    const auto checked = check_program(plan_, command);
    if (checked) return std::string("no error");
    EXPECT_EQ(checked.error().kind, ErrorKind::kUnreadable);
    return checked.error().text();
  };
  EXPECT_THAT(mistake({"{plan_dir}/absent"}), EndsWith("/absent: no such program"));
  EXPECT_THAT(mistake({"{plan_dir}/data"}), EndsWith("/data: is no file that may be executed"));
  EXPECT_THAT(mistake({"{plan_dir}"}), EndsWith(": is no file that may be executed"));
  EXPECT_EQ(mistake({"data"}), "data: no such program in PATH");
}

TEST_F(Program, IsNotLookedForWhereOnlyItsPhaseKnowsIt) {
  EXPECT_TRUE(check_program(plan_, {"{checkpoint}/restore"}));
  plan_.eval = {};
  plan_.train = plan_.resume = {"trainer"};
  EXPECT_TRUE(check_programs(plan_));
}

}  // namespace
}  // namespace ckptverify
