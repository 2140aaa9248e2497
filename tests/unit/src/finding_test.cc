// From errors to findings, and from findings to the verdict and its causes.
#include "ckptverify/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ckptverify/report.h"

namespace ckptverify {
namespace {

using testing::ElementsAre;

Finding finding(std::string check, Status status, std::optional<CauseKind> kind = std::nullopt) {
  Finding made{.check = std::move(check), .status = status, .message = "m"};
  if (kind) made.cause = Cause{.kind = *kind};
  return made;
}

std::vector<std::string> cause_ids(const std::vector<RankedCause>& causes) {
  std::vector<std::string> ids;
  for (const RankedCause& cause : causes) ids.push_back(cause.cause.id());
  return ids;
}

TEST(StatusName, HasHyphens) {
  EXPECT_EQ(status_name(Status::kPass), "pass");
  EXPECT_EQ(status_name(Status::kNotObserved), "not-observed");
  EXPECT_EQ(status_name(Status::kNotApplicable), "not-applicable");
  EXPECT_EQ(status_name(Status::kWaived), "waived");
}

TEST(FindingOf, MalformedFailsWithItsCause) {
  const Finding made = finding_of(Error{.message = "found 1, expected 2",
                                        .subject = "a.pt",
                                        .offset = 7,
                                        .cause = Cause{.kind = CauseKind::kTrunc}},
                                  "static.format");
  EXPECT_EQ(made.status, Status::kFail);
  EXPECT_EQ(made.cause->id(), "trunc");
  EXPECT_EQ(made.subject, "a.pt");
  EXPECT_EQ(made.message, "a.pt: byte 7: found 1, expected 2");
  EXPECT_EQ(made.check, "static.format");
}

TEST(FindingOf, MalformedWithoutACauseIsUnknown) {
  EXPECT_EQ(finding_of(Error{.message = "m"}, "c").cause->id(), "unknown(other)");
}

TEST(FindingOf, EverythingElseIsInconclusiveAndHasNoCause) {
  for (const ErrorKind kind :
       {ErrorKind::kUnreadable, ErrorKind::kUnsupported, ErrorKind::kUsage}) {
    const Finding made = finding_of(
        Error{.kind = kind, .message = "m", .cause = Cause{.kind = CauseKind::kTrunc}}, "c");
    EXPECT_EQ(made.status, Status::kInconclusive);
    EXPECT_EQ(made.cause, std::nullopt);
  }
}

TEST(VerdictOf, AnyFailFailsWhateverElse) {
  const std::vector<Finding> findings = {finding("a", Status::kInconclusive),
                                         finding("b", Status::kFail), finding("c", Status::kPass)};
  EXPECT_EQ(verdict_of(findings), Verdict::kFail);
}

TEST(VerdictOf, AnyInconclusiveKeepsItFromPassing) {
  const std::vector<Finding> findings = {finding("a", Status::kPass),
                                         finding("b", Status::kInconclusive)};
  EXPECT_EQ(verdict_of(findings), Verdict::kInconclusive);
}

TEST(VerdictOf, TheOtherStatusesDoNotChangeIt) {
  for (const Status status : {Status::kPass, Status::kWarn, Status::kNotObserved,
                              Status::kNotApplicable, Status::kSkipped, Status::kWaived})
    EXPECT_EQ(verdict_of(std::vector<Finding>{finding("a", Status::kPass), finding("b", status)}),
              Verdict::kPass);
}

TEST(RankCauses, GroupsChecksByCauseInTheOrderOfTheFindings) {
  const std::vector<Finding> findings = {
      finding("identity.optimizer", Status::kFail, CauseKind::kOptLost),
      finding("identity.rng", Status::kFail, CauseKind::kRngLost),
      finding("trajectory.loss", Status::kFail, CauseKind::kOptLost),
      finding("trajectory.loss", Status::kFail, CauseKind::kOptLost),
  };
  const auto causes = rank_causes(findings);
  EXPECT_THAT(cause_ids(causes), ElementsAre("opt-lost", "rng-lost"));
  EXPECT_THAT(causes[0].checks, ElementsAre("identity.optimizer", "trajectory.loss"));
}

TEST(RankCauses, PutsWhatHasNoNameLast) {
  const std::vector<Finding> findings = {finding("a", Status::kFail, CauseKind::kUnknown),
                                         finding("b", Status::kFail, CauseKind::kEma)};
  EXPECT_THAT(cause_ids(rank_causes(findings)), ElementsAre("ema", "unknown(other)"));
}

TEST(RankCauses, OnlyFailsNameCauses) {
  const std::vector<Finding> findings = {finding("a", Status::kWarn, CauseKind::kEma),
                                         finding("b", Status::kWaived, CauseKind::kTied)};
  EXPECT_TRUE(rank_causes(findings).empty());
}

TEST(Conclude, FillsVerdictAndCauses) {
  Report report;
  report.checks = {finding("a", Status::kFail, CauseKind::kEma)};
  conclude(report);
  EXPECT_EQ(report.verdict, Verdict::kFail);
  EXPECT_THAT(cause_ids(report.causes), ElementsAre("ema"));
}

}  // namespace
}  // namespace ckptverify
