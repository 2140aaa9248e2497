// The renderings for continuous integration. Besides what is asserted here, the files are written
// to the build folder, where tests/report_ci_test.py reads them as a CI system would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/report/junit.h"
#include "src/report/markdown.h"
#include "tests/unit/src/report_sample.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

/// What a trainer may print or be called, at its worst.
constexpr std::string_view kHostile =
    "a|b `c` ``d`` <script>*_e_*</script> ]]> & \"q\" 'r' @name #12 \x1b[31m \xff\xef\xbf\xbe\n# "
    "f\tg";

/// One check of every status, and a name that comes twice.
Report hostile() {
  Report report{.command = "run", .subject = std::string(kHostile)};
  for (const Status status :
       {Status::kPass, Status::kFail, Status::kWarn, Status::kInconclusive, Status::kNotObserved,
        Status::kNotApplicable, Status::kSkipped, Status::kWaived})
    report.checks.push_back({.check = "rng." + std::string(kHostile),
                             .status = status,
                             .message = std::string(kHostile),
                             .evidence = {{std::string(kHostile), std::string(kHostile)}}});
  report.checks[1].cause = Cause{.kind = CauseKind::kRngLost, .component = std::nullopt};
  report.proven = report.not_proven = {std::string(kHostile)};
  report.environment = {{std::string(kHostile), std::string(kHostile)}};
  report.output_directory = report.repeat_command = std::string(kHostile);
  conclude(report);
  return report;
}

TEST(ReportCi, IsWrittenForTheParsersTest) {
  const fs::path directory = fs::path(CKPTVERIFY_BUILD) / "reports";
  fs::create_directories(directory);
  const auto write = [&](const std::string& name, const Report& report) {
    std::ofstream junit(directory / (name + ".xml"));
    junit << report_junit(report);
    std::ofstream markdown(directory / (name + ".md"));
    markdown << report_markdown(report);
    EXPECT_TRUE(junit.good() && markdown.good());
  };
  for (const std::string name : {"pass", "fail", "inconclusive"}) write(name, sample(name));
  write("hostile", hostile());
}

TEST(ReportJunit, AFailureNamesItsCauseAndCarriesTheEvidence) {
  const std::string xml = report_junit(sample("fail"));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"ckptverify.run.trajectory\" "
                             "name=\"trajectory.loss\" time=\"0\"><failure type=\"sched-lost\" "
                             "message=\"loss parts from the reference&#39;s at step 7: found "
                             "3.6911468505859375, expected 3.5904483795166016\">"));
  EXPECT_THAT(xml, HasSubstr("\nremedy: Save the scheduler&#39;s state_dict"));
  EXPECT_THAT(xml, HasSubstr("\nsteps that differ: 4 of 5\n</failure>"));
  EXPECT_THAT(xml, HasSubstr(" tests=\"46\" failures=\"10\" errors=\"0\" skipped=\"0\" "));
}

TEST(ReportJunit, WhatCouldNotBeToldIsAnErrorAndWhatWasNotSeenIsSkipped) {
  const std::string xml = report_junit(sample("inconclusive"));
  EXPECT_THAT(xml, HasSubstr(" tests=\"35\" failures=\"0\" errors=\"1\" skipped=\"18\" "));
  EXPECT_THAT(xml, HasSubstr("name=\"process.kill\" time=\"0\"><error type=\"inconclusive\" "
                             "message=\"the trainer had ended by itself before the kill"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"not-observed: "));
}

TEST(ReportMarkdown, AFailSaysVerdictCauseAndRemedyThenTheChecks) {
  const std::string text = report_markdown(sample("fail"));
  EXPECT_THAT(text, StartsWith("## FAIL: If this run dies, it does not come back as the same run.\n"
                               "\n"
                               "**Cause** `sched-lost`: The learning-rate schedule starts over "
                               "because its state was not saved or was overwritten while loading.\n"
                               "\n"
                               "**First seen** `identity.optimizer`: "));
  EXPECT_THAT(text, HasSubstr("\n\n**First apart** lr at step 6: found 0.00075, expected "
                              "0.00268416\n\n**Remedy** Save the scheduler's state\\_dict"));
  EXPECT_THAT(text,
              HasSubstr("\n\n| status | check | what was found |\n|---|---|---|\n"
                        "| fail | `identity.optimizer` | optimizer: entry param\\_groups.0.lr"));
  EXPECT_THAT(text, Not(HasSubstr("| pass |")));
  EXPECT_THAT(text, HasSubstr("\n<details><summary>"));
}

TEST(ReportMarkdown, AnInconclusiveOneSaysWhyAndWhatNext) {
  const std::string text = report_markdown(sample("inconclusive"));
  EXPECT_THAT(text, HasSubstr("**Why** `process.kill`: the trainer had ended by itself"));
  EXPECT_THAT(text, HasSubstr("**Next** The trainer must still be training when it is killed"));
  EXPECT_THAT(text, HasSubstr("<details><summary>6 not proven</summary>\n\n- "));
}

TEST(ReportMarkdown, NothingInsideTextIsMarkup) {
  EXPECT_EQ(markdown_escaped("a|b *c* <d> @e\nf_g #1"),
            "a\\|b \\*c\\* \\<d\\> @<!-- -->e f\\_g #<!-- -->1");
  EXPECT_EQ(markdown_escaped("- no list"), "\\- no list");
  EXPECT_EQ(markdown_code("plain"), "`plain`");
  EXPECT_EQ(markdown_code("a `b` ``c``"), "``` a `b` ``c`` ```");
  EXPECT_EQ(markdown_code("a|b"), "`a|b`");
  EXPECT_EQ(markdown_code("a|b", Place::kCell), "`a\\|b`");
}

}  // namespace
}  // namespace ckptverify
