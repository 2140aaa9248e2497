// Renderings of a report: JSON and back, the console to the letter, a page that needs nothing else.
// The rendered JSON is written to the build folder, where tests/schema_test.py holds it against
// docs/report.schema.json.
#include "ckptverify/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "src/report/console.h"
#include "src/report/html.h"
#include "src/report/json.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Cause kOptLost{.kind = CauseKind::kOptLost, .component = std::nullopt};
constexpr Cause kUnknownModel{.kind = CauseKind::kUnknown, .component = Component::kModel};

Report failed_run() {
  Report report{.command = "run", .subject = "plans/tiny.toml"};
  report.checks = {
      {.check = "process.kill", .subject = "interrupted run", .message = "SIGKILL left none"},
      {.check = "identity.optimizer",
       .status = Status::kFail,
       .cause = kOptLost,
       .subject = "optimizer",
       .message = "optimizer: entry state.0.exp_avg is in the checkpoint and was not restored",
       .evidence = {{"state.0.exp_avg", "on disk ckv1:00, restored nothing"},
                    {"last lines of its output", "loading <model>\n\x1b[31mdone\x1b[0m"}}},
      {.check = "trajectory.loss",
       .status = Status::kFail,
       .cause = kUnknownModel,
       .subject = "resumed run",
       .message = "loss parts from the reference's at step 7"},
      {.check = "eval.saved",
       .status = Status::kNotObserved,
       .subject = "model",
       .message = "the writer did not evaluate at step 5"}};
  report.proven = {"SIGKILL after the save at step 5 ended 2 processes and left none"};
  report.not_proven = {"eval.saved: the writer did not evaluate at step 5"};
  report.save_step = 5;
  report.final_step = 10;
  report.fingerprint = "ckv1:000102030405060708090a0b0c0d0e0f";
  report.phases = {{.name = "reference",
                    .command = {"trainer", "--name", "a & b"},
                    .started_s = 0,
                    .wall_s = 3.5,
                    .exit = "signal 9 (KILL), sent by us",
                    .kill = "SIGKILL to 2 processes, all gone",
                    .first_step = 1,
                    .last_step = 10,
                    .log = "reference.log",
                    .events = "reference.jsonl"},
                   {.name = "evaluation at N", .started_s = 3.5, .wall_s = 130, .exit = "exit 0"}};
  report.identity = {{.component = "model",
                      .live = "ckv1:000102030405060708090a0b0c0d0e0f",
                      .disk = "ckv1:000102030405060708090a0b0c0d0e0f",
                      .restored = "",
                      .status = Status::kNotObserved}};
  report.curves = {{.metric = "loss", .run = "reference", .points = {{1, 4.0}, {10, 0.1}}},
                   {.metric = "loss",
                    .run = "restored",
                    .points = {{6, 0.1}, {7, std::numeric_limits<double>::infinity()}}}};
  report.timings = {
      .wall_s = 134, .trainer_s = 133.5, .copy_s = 0.01, .own_s = 0.49, .copy_method = "reflink"};
  report.environment = {{"machine", "x86_64"}, {"kernel", "6.1 \"quoted\""}};
  report.output_directory = "out/tiny";
  report.repeat_command = "ckptverify run plans/tiny.toml --set fault='opt-lost'";
  report.seed = std::numeric_limits<std::uint64_t>::max();
  conclude(report);
  return report;
}

Report passed_check() {
  Report report{.command = "check", .subject = "step-5"};
  report.checks = {{.check = "static.readable", .message = "the checkpoint can be read"}};
  conclude(report);
  return report;
}

TEST(ReportJson, ComesBackAsItWas) {
  for (const Report& report : {failed_run(), passed_check()}) {
    const std::string text = report_json(report).text(2);
    const auto json = Json::parse(text);
    ASSERT_TRUE(json) << json.error().text();
    const auto back = report_from_json(*json);
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(report_json(*back).text(2), text);
    EXPECT_EQ(back->checks.size(), report.checks.size());
    EXPECT_EQ(back->causes.size(), report.causes.size());
    EXPECT_EQ(back->seed, report.seed);
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_sequence_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

TEST(Report, IsUtf8WhateverATrainerPrints) {
  Report report = failed_run();
  const std::string printed = "caf\xc3\xa9 \xff\xfe \xc3( \xed\xa0\x80 cut \xe2\x82";
  report.checks[1].message = printed;
  report.checks[1].evidence.push_back({"last lines of its output", printed});
  report.phases[0].command.push_back(printed);
  report.output_directory = report.subject = printed;
  const std::string json = report_json(report).text(2);
  EXPECT_TRUE(is_utf8(json));
  const auto back = Json::parse(json);
  ASSERT_TRUE(back) << back.error().text();
  const std::string replaced =
      "caf\xc3\xa9 \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd( "
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd cut \xef\xbf\xbd\xef\xbf\xbd";
  EXPECT_EQ(*back->find("subject")->string(), replaced);
  EXPECT_TRUE(is_utf8(report_html(report)));
  EXPECT_TRUE(is_utf8(report_console(report, Colour::kOff)));
  EXPECT_THAT(report_html(report), HasSubstr("caf\xc3\xa9 ?? ?( ??? cut ??"));
}

TEST(ReportJson, NamesItsSchemaAndRanksCauses) {
  const Json json = report_json(failed_run());
  EXPECT_EQ(*json.find("schema")->string(), "ckptverify.run/1");
  const Json& first = json.find("causes")->array()->front();
  EXPECT_EQ(*first.find("id")->string(), "opt-lost");
  EXPECT_EQ(first.find("rank")->unsigned_integer(), 1U);
  EXPECT_EQ(*json.find("causes")->array()->at(1).find("id")->string(), "unknown(model)");
}

TEST(ReportJson, ComplaintsNameTheMember) {
  const std::string good = report_json(failed_run()).text();
  const auto complaint = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    const auto json = Json::parse(bad);
    const auto report = report_from_json(*json);
    return report ? std::string("none") : report.error().message;
  };
  EXPECT_THAT(complaint("\"seed\"", "\"sead\""), HasSubstr("\"seed\""));
  EXPECT_THAT(complaint("ckptverify.run/1", "ckptverify.run/2"), HasSubstr("ckptverify.run/2"));
  EXPECT_THAT(complaint("\"not-observed\"", "\"not-seen\""), HasSubstr("\"status\""));
  EXPECT_THAT(complaint("\"unknown(model)\"", "\"unknown(soul)\""), HasSubstr("unknown(soul)"));
  EXPECT_THAT(complaint("\"verdict\":\"fail\"", "\"verdict\":\"failed\""),
              HasSubstr("\"verdict\""));
}

TEST(ReportJson, IsWrittenForTheSchemaTest) {
  const std::filesystem::path directory = std::filesystem::path(CKPTVERIFY_BUILD) / "reports";
  std::filesystem::create_directories(directory);
  for (const Report& report : {failed_run(), passed_check()}) {
    std::ofstream stream(directory / (report.command + ".json"));
    stream << report_json(report).text(2) << '\n';
    EXPECT_TRUE(stream.good());
  }
}

TEST(Report, NamesTheKillOnlyWhereItWasConfirmed) {
  Report report = failed_run();
  ASSERT_EQ(report.checks[0].check, "process.kill");
  const std::string killed = "killed after the save at step 5, compared to step 10";
  EXPECT_THAT(report_html(report), HasSubstr(killed));
  report.checks[0].status = Status::kInconclusive;
  EXPECT_THAT(report_html(report), Not(HasSubstr(killed)));
  EXPECT_THAT(report_console(report, Colour::kOff), Not(HasSubstr(killed)));
}

TEST(Report, SaysOfACheckpointsMissingComponentThatItIsAbsent) {
  Report report = passed_check();
  report.checks = {{.check = "static.components",
                    .status = Status::kFail,
                    .cause = kOptLost,
                    .message = "the required component optimizer is absent"}};
  conclude(report);
  EXPECT_THAT(report_console(report, Colour::kOff),
              HasSubstr("cause opt-lost\n      The required component optimizer is absent.\n"));
  report.command = "run";
  EXPECT_THAT(report_console(report, Colour::kOff),
              HasSubstr("cause opt-lost\n      The optimizer starts without its moments"));
}

TEST(ReportConsole, SaysVerdictAndCauseFirst) {
  EXPECT_EQ(report_console(failed_run(), Colour::kOff),
            R"(FAIL  If this run dies, it does not come back as the same run.
cause opt-lost
      The optimizer starts without its moments because its state was not saved or not loaded.
      Remedy: Save optimizer.state_dict() and load it after the parameters are in place.
then  unknown(model)
seen  identity.optimizer: optimizer: entry state.0.exp_avg is in the checkpoint and was not restored
      1 pass, 2 fail, 1 not-observed
of    plans/tiny.toml
      killed after the save at step 5, compared to step 10
      fingerprint ckv1:000102030405060708090a0b0c0d0e0f

Proven
  - SIGKILL after the save at step 5 ended 2 processes and left none

Not proven
  - eval.saved: the writer did not evaluate at step 5

Checks
  pass           process.kill       SIGKILL left none
  fail           identity.optimizer optimizer: entry state.0.exp_avg is in the checkpoint and was
                                    not restored
  fail           trajectory.loss    loss parts from the reference's at step 7
  not-observed   1 check, listed under Not proven

Evidence
  identity.optimizer (opt-lost)
    state.0.exp_avg: on disk ckv1:00, restored nothing
    last lines of its output:
      | loading <model>
      | ?[31mdone?[0m

Phases
  reference        3.50 s, steps 1 to 10, SIGKILL to 2 processes, all gone
  evaluation at N  2 min 10 s, exit 0
  in all 2 min 14 s: 2 min 14 s in trainers, 0.01 s copying (reflink), 0.49 s reading, hashing and
  judging

files   out/tiny
page    out/tiny/report.html
repeat  ckptverify run plans/tiny.toml --set fault='opt-lost'
seed    18446744073709551615
)");
}

TEST(ReportConsole, PassIsShort) {
  EXPECT_EQ(report_console(passed_check(), Colour::kOff),
            R"(PASS  By its bytes alone, this checkpoint is whole.
      1 pass
of    step-5

Checks
  pass           static.readable the checkpoint can be read

)");
}

TEST(ReportConsole, PassWithoutChecksumsPromisesNothingOfValues) {
  Report report = passed_check();
  report.checks.push_back({.check = "static.checksums",
                           .status = Status::kNotObserved,
                           .message = "the checkpoint carries no checksums"});
  EXPECT_EQ(verdict_sentence(report),
            "This checkpoint is complete; nothing in it would show a changed value.");
}

TEST(ReportConsole, PassWithChecksumsOfAPartPromisesNothingOfTheRest) {
  Report report = passed_check();
  report.checks.push_back({.check = "static.checksums",
                           .message = "1 of 1 stored checksum is right",
                           .evidence = {{"without a checksum", "16"}}});
  EXPECT_EQ(verdict_sentence(report),
            "This checkpoint is complete; of a part of it nothing would show a changed value.");
}

TEST(ReportConsole, ColoursOnlyWhenAsked) {
  EXPECT_THAT(report_console(failed_run(), Colour::kOff), Not(HasSubstr("\x1b")));
  EXPECT_THAT(report_console(failed_run(), Colour::kOn), HasSubstr("\x1b[1;31mFAIL\x1b[0m"));
}

TEST(ReportConsole, LongSentencesStayWithinTheColumns) {
  Report report = failed_run();
  std::string sentence;
  for (int i = 0; i < 60; ++i) sentence += "words and ";
  report.proven = {sentence};
  report.checks.front().message = sentence;
  std::istringstream lines(report_console(report, Colour::kOff));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(ReportConsole, KeepsPathsWholeAndCutsNamesWithoutBound) {
  Report report = failed_run();
  const std::string path = "/data/" + std::string(300, 'd') + "/model.pt";
  report.checks.front().message = "layer." + std::string(4090, 'x') + "w in " + path + " is wrong";
  const std::string text = report_console(report, Colour::kOff);
  EXPECT_THAT(text, HasSubstr("layer.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...(4097 bytes)..."));
  EXPECT_THAT(text, HasSubstr(path));
  EXPECT_THAT(text, Not(HasSubstr(std::string(100, 'x'))));
}

TEST(ReportHtml, EscapesWhatOthersWrote) {
  Report report = failed_run();
  report.subject = "<script>alert('x')</script>";
  report.checks.front().message = "a \"quoted\" & <b>bold</b> message";
  report.environment["<img src=x>"] = "<i>";
  report.curves.front().metric = "<loss>";
  report.phases.front().name = "<phase>";
  const std::string html = report_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<b>bold")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("<loss>")));
  EXPECT_THAT(html, Not(HasSubstr("<phase>")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("a &quot;quoted&quot; &amp; &lt;b&gt;bold&lt;/b&gt; message"));
}

TEST(ReportHtml, NeedsNothingElse) {
  const std::string html = report_html(failed_run());
  for (const char* outside : {"http://", "https://", "src=", "@import", "url(", "<script"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  EXPECT_FALSE(std::regex_search(html, std::regex("href=(?!\"#)"))) << "a link out of the page";
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("width=device-width"));
}

TEST(ReportHtml, OpensAndClosesEveryElement) {
  const std::string html = report_html(failed_run());
  const std::regex tag(R"(<(/?)([a-z0-9]+)[^>]*?(/?)>)");
  std::vector<std::string> open;
  for (auto it = std::sregex_iterator(html.begin(), html.end(), tag); it != std::sregex_iterator();
       ++it) {
    const std::string name = (*it)[2];
    if ((*it)[3] == "/" || name == "meta" || name == "br") continue;
    if ((*it)[1] != "/") {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Causes, AllAreDocumentedWithMeaningAndRemedy) {
  std::ifstream stream(std::string(CKPTVERIFY_SOURCE) + "/docs/causes.md");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  for (const CauseKindRow& row : cause_kinds()) {
    const std::string head = "## " + std::string(row.id) + "\n\n" + std::string(row.meaning) + "\n";
    EXPECT_THAT(text, HasSubstr(head));
    EXPECT_THAT(text, HasSubstr("- **Remedy.** " + std::string(row.remedy) + "\n"));
  }
}

TEST(ReportWords, DurationsReadWell) {
  EXPECT_EQ(duration_text(0.254), "0.25 s");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(247.4), "4 min 7 s");
}

}  // namespace
}  // namespace ckptverify
