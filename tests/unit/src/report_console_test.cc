// What the console puts first where nothing was decided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/report/console.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Report undecided() {
  Report report{.command = "run", .subject = "plan.toml"};
  report.checks = {
      {.check = "process.trace", .status = Status::kNotObserved, .message = "no events"},
      {.check = "identity.model", .status = Status::kNotObserved, .message = "not seen"},
      {.check = "verdict.evidence",
       .status = Status::kInconclusive,
       .message = "a pass is not proven: missing is a restore at the saved step"}};
  report.not_proven = {"process.trace, identity.model: no events"};
  conclude(report);
  return report;
}

TEST(ReportConsoleUndecided, SaysWhyBeforeAnythingElse) {
  EXPECT_THAT(
      report_console(undecided(), Colour::kOff),
      StartsWith("INCONCLUSIVE  Whether this run comes back as the same run was not shown.\n"
                 "why   verdict.evidence: a pass is not proven: missing is a restore at "
                 "the saved step\n"
                 "next  "));
}

TEST(ReportConsoleUndecided, ListsWhatWasNotObservedOnce) {
  const std::string text = report_console(undecided(), Colour::kOff);
  EXPECT_THAT(text, HasSubstr("  not-observed   2 checks, listed under Not proven\n"));
  EXPECT_THAT(text, Not(HasSubstr("not-observed   process.trace")));
  Report bare = undecided();
  bare.not_proven.clear();
  EXPECT_THAT(report_console(bare, Colour::kOff), HasSubstr("not-observed   process.trace"));
}

TEST(ReportConsoleUndecided, UnknownCauseIsSaidByItsFirstCheck) {
  Report report{.command = "run", .subject = "plan.toml"};
  report.checks = {{.check = "process.restore",
                    .status = Status::kFail,
                    .cause = Cause{},
                    .message = "the restore hangs: no step within the deadline"}};
  conclude(report);
  EXPECT_THAT(report_console(report, Colour::kOff),
              HasSubstr("cause unknown(other)\n      The restore hangs: no step within the "
                        "deadline. No known cause has its minimum evidence.\n"));
}

}  // namespace
}  // namespace ckptverify
