// Plans: what is read, and what every mistake is told.
#include "ckptverify/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace ckptverify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kMinimal = R"(schema = "ckptverify.plan/1"
seed = 7
[variables]
fault = "none"
layers = 2
[commands]
train = ["{tool_dir}/trainer", "--out={run_dir}", "--fault", "{fault}", "{{x}}"]
resume = ["trainer", "{checkpoint}", "{step}", "{seed}", "{run_dir}"]
[checkpoints]
path = "{run_dir}/step-{step}"
[steps]
save = 5
final = 10
horizon = 11
)";

class PlanFile : public ::testing::Test {
 protected:
  Result<Plan> load(const std::string& text,
                    const std::vector<std::pair<std::string, std::string>>& settings = {}) {
    std::ofstream(file_) << text;
    return load_plan(file_, settings, "/opt/tool");
  }
  /// The error's text behind the file's name.
  std::string mistake(const std::string& text,
                      const std::vector<std::pair<std::string, std::string>>& settings = {}) {
    const auto plan = load(text, settings);
    if (plan) return "no error";
    EXPECT_EQ(plan.error().kind, ErrorKind::kUsage);
    const std::string message = plan.error().text();
    EXPECT_TRUE(message.starts_with(file_.string())) << message;
    return message.substr(file_.string().size());
  }
  static std::string with(std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  }
  void TearDown() override { std::filesystem::remove(file_); }

  std::filesystem::path file_ = std::filesystem::temp_directory_path() /
                                ("ckptverify-plan-" + std::to_string(::getpid()) + ".toml");
};

TEST_F(PlanFile, ReadsWhatEntriesAreFor) {
  const std::string path = "path = \"{run_dir}/step-{step}\"";
  const auto plan =
      load(with(kMinimal, path, path + "\ncomponents = ['^step$=step', '^v=.*=optimizer']"));
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->component_rules.size(), 2U);
  EXPECT_EQ(plan->component_rules[0].pattern, "^step$");
  EXPECT_EQ(plan->component_rules[0].component, Component::kStep);
  EXPECT_EQ(plan->component_rules[1].pattern, "^v=.*");
  EXPECT_EQ(plan->component_rules[1].component, Component::kOptimizer);
  const auto said = [&](const std::string& rule) {
    return mistake(with(kMinimal, path, path + "\ncomponents = ['" + rule + "']"));
  };
  EXPECT_THAT(said("step"), HasSubstr("found 'step', expected REGEX=COMPONENT"));
  EXPECT_THAT(said("step=stop"), HasSubstr("found 'stop', expected one of model"));
  EXPECT_THAT(said("(=step"), HasSubstr("11:14: 'components': "));
}

TEST_F(PlanFile, ReadsEveryKey) {
  const auto plan = load(std::string(kMinimal) + R"(
[environment]
OMP_NUM_THREADS = "1"
HERE = "{plan_dir}/x"
[tolerance.tensors]
relative = 1e-6
[tolerance.metrics."eval.loss"]
absolute = 0.5
[required]
components = ["model", "rng"]
[[waivers]]
check = "identity.rng"
reason = "meant to differ"
[deadlines]
step_s = 1.5
kill_s = 2
)");
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_EQ(plan->name, file_.stem());
  EXPECT_EQ(plan->seed, 7U);
  EXPECT_EQ(plan->save_step, 5U);
  EXPECT_EQ(plan->final_step, 10U);
  EXPECT_EQ(plan->horizon, 11U);
  EXPECT_TRUE(plan->eval.empty());
  EXPECT_EQ(plan->variables.at("layers"), "2");
  EXPECT_EQ(plan->environment.at("HERE"), file_.parent_path().string() + "/x");
  EXPECT_EQ(plan->tensors.relative, 1e-6);
  EXPECT_EQ(plan->tensors.absolute, 0);
  EXPECT_EQ(plan->metrics.at("eval.loss").absolute, 0.5);
  EXPECT_THAT(plan->required, ElementsAre(Component::kModel, Component::kRng));
  EXPECT_EQ(plan->waivers.at(0).reason, "meant to differ");
  EXPECT_EQ(plan->deadlines.step_s, 1.5);
  EXPECT_EQ(plan->deadlines.kill_s, 2);
  EXPECT_EQ(plan->deadlines.start_s, 120);
}

TEST_F(PlanFile, ExpandsPlaceholdersOnce) {
  const auto plan = load(kMinimal, {{"fault", "{step}"}});
  ASSERT_TRUE(plan) << plan.error().text();
  const auto train = expand(*plan, plan->train, {{"run_dir", "/run"}});
  ASSERT_TRUE(train);
  EXPECT_THAT(*train, ElementsAre("/opt/tool/trainer", "--out=/run", "--fault", "{step}", "{x}"));
  const auto resume =
      expand(*plan, plan->resume, {{"checkpoint", "/c"}, {"step", "5"}, {"run_dir", "/run"}});
  ASSERT_TRUE(resume);
  EXPECT_THAT(*resume, ElementsAre("trainer", "/c", "5", "7", "/run"));
  EXPECT_FALSE(expand(*plan, {"{nothing}"}, {}));
}

TEST_F(PlanFile, FillsNumbersUpWithZeros) {
  const auto plan = load(kMinimal, {});
  ASSERT_TRUE(plan) << plan.error().text();
  const auto words = expand(*plan, {"iter_{step:07}", "{step:02}"}, {{"step", "125"}});
  ASSERT_TRUE(words) << words.error().text();
  EXPECT_THAT(*words, ElementsAre("iter_0000125", "125"));
  for (const char* word : {"{step:7}", "{step:}", "{step:00}", "{step:012}", "{step:0x}"}) {
    const auto refused = expand(*plan, {word}, {{"step", "125"}});
    ASSERT_FALSE(refused) << word;
    EXPECT_THAT(refused.error().text(), HasSubstr("expected one of 01 to 09, such as {step:07}"));
  }
}

TEST_F(PlanFile, NamesTheNearestKey) {
  EXPECT_EQ(mistake(with(kMinimal, "horizon =", "horizn =")),
            ":14:1: unknown key 'horizn'; expected 'horizon'");
  EXPECT_EQ(mistake(with(kMinimal, "[steps]", "[step]")),
            ":11:2: unknown key 'step'; expected 'steps'");
}

TEST_F(PlanFile, NamesTheNearestPlaceholder) {
  EXPECT_EQ(mistake(with(kMinimal, "{fault}", "{falt}")),
            ":7:62: unknown placeholder {falt}; expected {fault}");
  EXPECT_THAT(mistake(with(kMinimal, "{run_dir}\"", "{checkpoint}\"")),
              HasSubstr("unknown placeholder {checkpoint}"));
}

TEST_F(PlanFile, RefusesABraceWithoutItsPartner) {
  EXPECT_THAT(mistake(with(kMinimal, "{{x}}", "{x")), HasSubstr(":7:73: a brace without"));
  EXPECT_THAT(mistake(with(kMinimal, "{{x}}", "x}")), HasSubstr("a brace without"));
  EXPECT_THAT(mistake(with(kMinimal, "{{x}}", "{}")), HasSubstr("a brace without"));
}

TEST_F(PlanFile, RefusesStepsOutOfOrder) {
  EXPECT_EQ(mistake(with(kMinimal, "final = 10", "final = 5")),
            ":13:9: 'final' must come after 'save'; found 5, expected more than 5");
  EXPECT_THAT(mistake(with(kMinimal, "horizon = 11", "horizon = 10")),
              HasSubstr("found 10, expected at least 11"));
  EXPECT_THAT(mistake(with(kMinimal, "save = 5", "save = 0")), HasSubstr("must be 1 or more"));
  EXPECT_THAT(mistake(with(kMinimal, "save = 5", "save = -1")), HasSubstr("0 or more"));
  EXPECT_THAT(mistake(with(kMinimal, "save = 5", "save = 5.0")), HasSubstr("an integer"));
}

TEST_F(PlanFile, RefusesWhatIsMissing) {
  EXPECT_THAT(mistake(with(kMinimal, "save = 5\n", "")), HasSubstr("no key 'save'"));
  EXPECT_THAT(mistake(with(kMinimal, "schema = \"ckptverify.plan/1\"\n", "")),
              HasSubstr("no key 'schema'"));
  EXPECT_THAT(mistake(with(kMinimal, "plan/1", "plan/2")), HasSubstr("unknown schema"));
  EXPECT_THAT(mistake("schema = \"ckptverify.plan/1\"\n"), HasSubstr("no key 'commands'"));
}

TEST_F(PlanFile, RefusesAWaiverWithoutAReason) {
  const std::string waiver = std::string(kMinimal) + "[[waivers]]\ncheck = \"identity.rng\"\n";
  EXPECT_THAT(mistake(waiver), HasSubstr("no key 'reason'"));
  EXPECT_THAT(mistake(waiver + "reason = \"\"\n"), HasSubstr("a waiver needs its reason"));
}

TEST_F(PlanFile, RefusesAComponentAndADeadlineThatCannotBe) {
  EXPECT_THAT(mistake(std::string(kMinimal) + "[required]\ncomponents = [\"modell\"]\n"),
              HasSubstr("unknown component 'modell'"));
  EXPECT_THAT(mistake(std::string(kMinimal) + "[deadlines]\nstep_s = 0\n"),
              HasSubstr("must be more than 0"));
  EXPECT_THAT(mistake(std::string(kMinimal) + "[deadlines]\nstep_s = inf\n"),
              HasSubstr("must be a number"));
}

TEST_F(PlanFile, SetsOnlyVariablesThatAreDeclared) {
  const auto plan = load(kMinimal, {{"fault", "sched-lost"}});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->variables.at("fault"), "sched-lost");
  EXPECT_THAT(mistake(kMinimal, {{"falt", "x"}}), HasSubstr("it has fault, layers"));
  EXPECT_THAT(mistake(kMinimal, {{"seed", "3"}}), HasSubstr("declares no such variable"));
  EXPECT_THAT(mistake(with(kMinimal, "fault =", "step =")), HasSubstr("a name of the plan itself"));
}

TEST_F(PlanFile, KeepsCheckpointsInTheRunDirectory) {
  EXPECT_THAT(mistake(with(kMinimal, "\"{run_dir}/step-{step}\"", "\"/tmp/step-{step}\"")),
              HasSubstr("must lie in {run_dir}"));
  for (const char* path : {"{run_dir}/../step-{step}", "/tmp{run_dir}/step-{step}",
                           "{run_dir}x/step-{step}", "{run_dir}", "{run_dir}/a/..", ""}) {
    EXPECT_THAT(mistake(with(kMinimal, "{run_dir}/step-{step}", path)),
                HasSubstr("must lie in {run_dir}, which is another directory in every phase; "
                          "found '" +
                          std::string(path) + "'"));
  }
  EXPECT_TRUE(load(with(kMinimal, "{run_dir}/step-{step}", "{run_dir}//a/../{fault}/")));
}

TEST_F(PlanFile, RefusesACommandThatIsNotToldWhatItNeeds) {
  EXPECT_THAT(mistake(with(kMinimal, "\"{checkpoint}\"", "\"latest\"")),
              HasSubstr(":8:10: 'resume' must be told {checkpoint}; found no word"));
  EXPECT_THAT(mistake(with(kMinimal, ", \"{run_dir}\"", "")),
              HasSubstr("'resume' must be told {run_dir}"));
  EXPECT_THAT(mistake(with(kMinimal, "--out={run_dir}", "--out={{run_dir}}")),
              HasSubstr("'train' must be told {run_dir}"));
  EXPECT_THAT(mistake(with(kMinimal, "[checkpoints]", "eval = [\"trainer\"]\n[checkpoints]")),
              HasSubstr("'eval' must be told {checkpoint}"));
  EXPECT_THAT(mistake(with(kMinimal, "resume = [\"trainer\"", "resume = [\"\"")),
              HasSubstr("must have at least the program"));
}

TEST_F(PlanFile, SaysWhatItFoundInsteadOfWhatItExpected) {
  const auto seed = [](const std::string& value) { return with(kMinimal, "seed = 7", value); };
  EXPECT_EQ(mistake(seed("seed = 1.5")),
            ":2:8: 'seed' must be an integer of 0 or more; found the number 1.5");
  EXPECT_EQ(mistake(seed("seed = \"7\"")),
            ":2:8: 'seed' must be an integer of 0 or more; found the string '7'");
  EXPECT_EQ(mistake(seed("name = 3")), ":2:8: 'name' must be a string; found 3");
  EXPECT_EQ(mistake(seed("environment = true")),
            ":2:15: 'environment' must be a table; found true");
  EXPECT_THAT(mistake(with(kMinimal, "\"trainer\", \"{checkpoint}\"", "\"tr\\u0000\"")),
              HasSubstr("must not hold a zero byte"));
}

TEST_F(PlanFile, RefusesToleranceForAMetricThatIsNone) {
  const auto tolerance = [](const std::string& name) {
    return std::string(kMinimal) + "[tolerance.metrics.\"" + name + "\"]\nrelative = 0.1\n";
  };
  EXPECT_THAT(mistake(tolerance("los")),
              HasSubstr("unknown metric 'los'; expected one of loss, lr, scale, grad_norm, or "
                        "eval.<name>"));
  EXPECT_TRUE(load(tolerance("eval.accuracy")));
}

TEST_F(PlanFile, SaysWhereTheTomlIsBroken) {
  EXPECT_TRUE(mistake("schema = \"ckptverify.plan/1\"\nname = \n").starts_with(":2:"));
}

TEST(Plan, CannotBeOpenedWhereThereIsNone) {
  const auto plan = load_plan("/nowhere/plan.toml", {}, "/opt/tool");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::kUnreadable);
}

TEST(Plan, OfEachTrainerOfOursIsGood) {
  for (const char* file : {"fixtures/odd_trainer/plan.toml", "fixtures/trainer/plan.toml"}) {
    const auto plan = load_plan(std::filesystem::path(CKPTVERIFY_SOURCE) / file, {}, "/opt/tool");
    ASSERT_TRUE(plan) << plan.error().text();
    EXPECT_EQ(plan->save_step, 5U) << file;
    EXPECT_EQ(plan->final_step, 10U) << file;
  }
}

}  // namespace
}  // namespace ckptverify
