// The HTML page: what a reader meets first, that every link leads somewhere, and the drawings to
// the number. report_samples/ are reports of real gates: the bundled trainer, the same with a
// planted fault, and a trainer that writes no events and ends before it can be killed. Their pages
// are written to the build folder, where tests/report_page_test.py measures them in a browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>

#include "src/report/findings_html.h"
#include "src/report/html.h"
#include "src/report/markup.h"
#include "src/report/reason.h"
#include "src/report/svg.h"
#include "src/report/timeline.h"
#include "tests/unit/src/report_sample.h"

namespace ckptverify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

/// Everything that a trainer, a plan or a checkpoint may make long, long and without a space.
Report overlong() {
  Report report = sample("fail");
  const std::string word(400, 'w');
  report.subject = report.output_directory = report.repeat_command = word;
  for (Finding& finding : report.checks) {
    finding.message = word + ": found " + word + ", expected " + word + "; " + word;
    finding.evidence = {{word, word}, {"last lines of its output", word + "\n" + word}};
  }
  report.checks.front().check = "process." + word;
  report.proven = report.not_proven = {word};
  for (PhaseRecord& phase : report.phases) {
    phase.name = phase.kill = phase.exit = phase.log = phase.events = word;
    phase.command = {word, word};
  }
  for (IdentityRow& row : report.identity) row.component = word;
  report.identity.front().live = word;  // no digest
  for (Curve& curve : report.curves)
    for (auto& point : curve.points) point.second *= -1.234567e-300;
  report.environment[word] = word;
  return report;
}

std::string header_of(const std::string& html) {
  const std::size_t begin = html.find("<header");
  return html.substr(begin, html.find("</header>") - begin);
}

/// Without elements, as a reader sees it.
std::string text_of(const std::string& html) {
  return std::regex_replace(html, std::regex("<[^>]*>"), " ");
}

TEST(ReportPage, IsWrittenForTheBrowserTest) {
  const fs::path directory = fs::path(CKPTVERIFY_BUILD) / "reports";
  fs::create_directories(directory);
  const auto write = [&](const std::string& name, const Report& report) {
    std::ofstream stream(directory / (name + ".html"));
    stream << report_html(report);
    EXPECT_TRUE(stream.good());
  };
  for (const std::string name : {"pass", "fail", "inconclusive"}) write(name, sample(name));
  write("overlong", overlong());
}

TEST(ReportPage, AFailSaysCauseWhereItFirstPartedAndTheRemedyFirst) {
  const Report report = sample("fail");
  const std::string header = header_of(report_html(report));
  EXPECT_THAT(header, HasSubstr("sched-lost"));
  EXPECT_THAT(header, HasSubstr("The learning-rate schedule starts over"));
  EXPECT_THAT(header, HasSubstr("lr at step 6: found 0.00075, expected 0.00268416; "
                                "loss from step 7; grad_norm from step 7"));
  EXPECT_THAT(header, HasSubstr("<a class=\"mono\" href=\"#check-identity.optimizer\">"));
  EXPECT_THAT(header, HasSubstr("Save the scheduler&#39;s state_dict and load it after"));
  EXPECT_THAT(text_of(header), HasSubstr("fault=sched-lost"));
}

TEST(ReportPage, AnInconclusiveOneSaysWhyAndWhatToDoNext) {
  const std::string header = header_of(report_html(sample("inconclusive")));
  EXPECT_THAT(header, HasSubstr("<dt>Why</dt>"));
  EXPECT_THAT(header, HasSubstr("the trainer had ended by itself before the kill at step 5"));
  EXPECT_THAT(header, HasSubstr("<dt>Next</dt>"));
  EXPECT_THAT(header, HasSubstr("raise the number of steps in the plan&#39;s commands"));
  EXPECT_THAT(header, HasSubstr("A pass also needs events, a few lines in the trainer: "
                                "docs/trainer-contract.md."));
}

TEST(ReportPage, APassSaysWhatItRestsOnAndWhatItLeavesOpen) {
  Report report = sample("pass");
  report.not_proven = {"eval.saved: no fresh process evaluated the checkpoint of step 5"};
  const std::string header = header_of(report_html(report));
  EXPECT_THAT(header, HasSubstr("killed after the save at step 5, compared to step 10; "
                                "<a href=\"#proven\">17 proven</a>; "
                                "<a href=\"#unproven\">1 not proven</a>"));
  EXPECT_THAT(header, HasSubstr("<dt>Next</dt><dd>Nothing."));
}

TEST(ReportPage, ShowsWhatFailedBeforeEverythingElseAndNoPassAmongIt) {
  const std::string html = report_html(sample("fail"));
  const std::size_t failed = html.find("<h2 id=\"failed\">What failed<small>10 checks</small>");
  const std::size_t timeline = html.find("<h2 id=\"timeline\"");
  ASSERT_NE(failed, std::string::npos);
  ASSERT_LT(failed, timeline);
  const std::string section = html.substr(failed, timeline - failed);
  EXPECT_THAT(section, Not(HasSubstr("status pass")));
  const std::regex finding("<div class=\"finding fail\"");
  EXPECT_EQ(std::distance(std::sregex_iterator(section.begin(), section.end(), finding), {}), 10);
  EXPECT_LT(timeline, html.find("<h2 id=\"proven\""));
}

TEST(ReportPage, EveryLinkLeadsToOnePlace) {
  for (const Report& report :
       {sample("pass"), sample("fail"), sample("inconclusive"), overlong()}) {
    const std::string html = report_html(report);
    std::multiset<std::string> places;
    const std::regex id(" id=\"([^\"]*)\"");
    for (auto it = std::sregex_iterator(html.begin(), html.end(), id); it != std::sregex_iterator();
         ++it)
      places.insert((*it)[1]);
    std::size_t links = 0;
    const std::regex link("href=\"#([^\"]*)\"");
    for (auto it = std::sregex_iterator(html.begin(), html.end(), link);
         it != std::sregex_iterator(); ++it, ++links)
      EXPECT_EQ(places.count((*it)[1]), 1U) << (*it)[1];
    EXPECT_GT(links, 5U);
  }
}

TEST(ReportPage, ChecksOfOneNameHaveTwoAnchorsAndOddNamesPlainOnes) {
  const std::vector<Finding> checks = {{.check = "static.components", .message = "a"},
                                       {.check = "static.components", .message = "b"},
                                       {.check = "rng.\"my source\"", .message = "c"}};
  EXPECT_THAT(anchors_of(checks),
              ElementsAre("check-static.components", "check-static.components--2",
                          "check-rng.-my-source-"));
}

TEST(ReportPage, ShortensDigestsAndMarksTheOneThatParts) {
  const std::string html = report_html(sample("fail"));
  EXPECT_THAT(html,
              HasSubstr("<td data-place=\"disk\" class=\"equals\"><code "
                        "title=\"ckv1:21bc9f94e8aed3fc680099507b38a30e\">21bc9f94e8ae</code>"));
  EXPECT_THAT(html,
              HasSubstr("<td data-place=\"restored\" class=\"parts\"><code "
                        "title=\"ckv1:e2210de49313ebb7e60252ba080fb316\">e2210de49313</code>"));
}

TEST(ReportPage, AKillThatWasPlannedLooksLikeNoCrash) {
  const std::string passed = timeline_html(sample("pass"));
  EXPECT_THAT(passed, HasSubstr("killed by the gate, as planned"));
  EXPECT_THAT(passed, Not(HasSubstr("class=\"bar wrong\"")));
  EXPECT_THAT(passed, Not(HasSubstr("crashed")));
  EXPECT_THAT(passed, HasSubstr("<span class=\"name\">evaluation of interrupted at 5</span>"));

  Report report = sample("pass");
  report.phases[3].exit = "exit 1";
  report.phases[3].kill = "";
  EXPECT_THAT(timeline_html(report), HasSubstr("crashed, hung or refused"));
  EXPECT_THAT(timeline_html(sample("inconclusive")), HasSubstr("had ended before the kill"));
}

TEST(ReportPage, CompositionAddsUpTheBytesAndCountsTheEntries) {
  const std::string text = text_of(report_html(sample("pass")));
  EXPECT_THAT(text, HasSubstr("tensor 1.6 MiB, 79.9%"));
  EXPECT_THAT(text, HasSubstr("metadata 400.0 KiB, 20.1%"));
  EXPECT_TRUE(std::regex_search(text, std::regex("optimizer +124 entries")));
}

TEST(ReportReason, ABrokenOffGateIsTheReasonWhateverElseCouldNotTell) {
  Report report{.command = "run"};
  report.checks = {{.check = "process.reference", .status = Status::kInconclusive, .message = "a"},
                   {.check = "process.gate", .status = Status::kInconclusive, .message = "b"},
                   {.check = "verdict.evidence", .status = Status::kInconclusive, .message = "c"}};
  conclude(report);
  EXPECT_EQ(deciding_check(report)->check, "process.gate");
  report.checks.erase(report.checks.begin() + 1);
  EXPECT_EQ(deciding_check(report)->check, "process.reference");
  report.checks.erase(report.checks.begin());
  EXPECT_EQ(deciding_check(report)->check, "verdict.evidence");
}

TEST(ReportReason, NoiseIsAnsweredByDeterminismOrATolerance) {
  Report report{.command = "run"};
  report.checks = {
      {.check = "trajectory.loss", .status = Status::kInconclusive, .message = "within noise"},
      {.check = "noise", .status = Status::kWarn, .message = "two runs differ"}};
  conclude(report);
  EXPECT_THAT(next_step(report), HasSubstr("grant a tolerance in the plan"));
}

TEST(ReportReason, FindsWhatWasFoundAndExpected) {
  const auto parts = found_expected("lr parts at step 6: found 1 2, expected 3 4; it starts over");
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->before, "lr parts at step 6");
  EXPECT_EQ(parts->found, "1 2");
  EXPECT_EQ(parts->expected, "3 4");
  EXPECT_EQ(parts->after, "it starts over");
  const auto comma = found_expected("entry w and 2 more, found 0.1, expected 0.2");
  ASSERT_TRUE(comma);
  EXPECT_EQ(comma->before, "entry w and 2 more");
  EXPECT_EQ(comma->expected, "0.2");
  EXPECT_EQ(comma->after, "");
  EXPECT_FALSE(found_expected("the first batch is that of step 1, expected that of step 6"));
  EXPECT_FALSE(found_expected("found nothing"));
}

TEST(ReportReason, FiguresHaveAsManyDigitsAsTellThemApart) {
  EXPECT_EQ(distinct_figures(0.00075, 0.0026841599982106203),
            (std::pair<std::string, std::string>{"0.00075", "0.00268416"}));
  EXPECT_EQ(distinct_figures(3.69114681, 3.69114695),
            (std::pair<std::string, std::string>{"3.69114681", "3.69114695"}));
  EXPECT_EQ(distinct_figures(1.0, std::nextafter(1.0, 2.0)).second, "1.0000000000000002");
}

TEST(ReportReason, ACurveThatItsCheckPassedDoesNotPart) {
  Report report = sample("fail");
  for (Finding& finding : report.checks)
    if (finding.check == "trajectory.lr") finding.status = Status::kPass;
  const std::vector<Parting> found = partings(report);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].metric, "loss");
  EXPECT_EQ(found[0].step, 7U);
}

TEST(ReportSvg, TicksAreRound) {
  EXPECT_THAT(round_ticks(0, 11.8, 5), ElementsAre(0, 5, 10));
  EXPECT_THAT(round_ticks(1, 10, 6), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_THAT(round_ticks(65536, 262144, 5), ElementsAre(100000, 150000, 200000, 250000));
  EXPECT_THAT(round_ticks(3, 3, 5), ElementsAre(3));
  const double huge = std::numeric_limits<double>::max();
  EXPECT_LE(round_ticks(-huge, huge, 5).size(), 7U);
  for (const double tick : round_ticks(-huge, huge, 5)) EXPECT_TRUE(std::isfinite(tick));
}

const std::vector<Curve> kCurves = {
    {.metric = "loss", .run = "reference", .points = {{1, 4.0}, {10, 0.1}}},
    {.metric = "loss",
     .run = "restored",
     .points = {{6, 0.1}, {7, std::numeric_limits<double>::infinity()}}}};

TEST(ReportSvg, DrawsBothRunsTheKillAndWhereTheyPart) {
  const std::string svg = curves_svg(kCurves, "loss", {.kill_step = 5, .parted_step = 6});
  // Labels of one digit leave 18.4 units at the left; 14 at the right, 26 above, 36 below.
  EXPECT_THAT(svg, HasSubstr("<polyline points=\"18.4,26 366,180\"/>"));
  EXPECT_THAT(svg, HasSubstr("<line class=\"kill\" x1=\"172.9\" y1=\"18\" x2=\"172.9\""));
  EXPECT_THAT(svg, HasSubstr(">killed after step 5</text>"));
  EXPECT_THAT(svg, HasSubstr("<polyline points=\"211.5,180\"/>"));
  EXPECT_THAT(svg, HasSubstr("<circle class=\"parted\" cx=\"211.5\" cy=\"180\" r=\"7\"/>"));
  // The infinite loss at step 7 is no point of the line, and is not kept quiet.
  EXPECT_THAT(svg, HasSubstr("<text class=\"lost\" x=\"250.1\" y=\"36\" "
                             "text-anchor=\"middle\">inf</text>"));
}

TEST(ReportSvg, ALongCurveHasNoDotsAndStillItsParting) {
  Curve curve{.metric = "loss", .run = "restored"};
  for (std::uint64_t step = 1; step <= 81; ++step) curve.points.emplace_back(step, 1.0);
  const std::string svg = curves_svg({curve}, "loss", {.kill_step = 0, .parted_step = 40});
  EXPECT_THAT(svg, Not(HasSubstr("class=\"dot\"")));
  EXPECT_THAT(svg, HasSubstr("class=\"parted\""));
  curve.points.pop_back();
  EXPECT_THAT(curves_svg({curve}, "loss", {}), HasSubstr("class=\"dot\""));
}

TEST(ReportSvg, DrawsNothingOfNothing) {
  EXPECT_EQ(curves_svg(kCurves, "scale", {.kill_step = 5}), "");
  EXPECT_EQ(timeline_html({}), "");
}

TEST(ReportSvg, SurvivesExtremeValues) {
  const double huge = std::numeric_limits<double>::max();
  const std::string svg = curves_svg(
      {{.metric = "loss", .run = "reference", .points = {{1, -huge}, {2, huge}}}}, "loss", {});
  EXPECT_THAT(svg, HasSubstr("180 366,26\"/>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace ckptverify
