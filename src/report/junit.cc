#include "src/report/junit.h"

#include <cstdio>
#include <map>

#include "src/report/markup.h"
#include "src/report/reason.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

/// How a status looks to a reader of JUnit XML.
enum class Outcome { kPassed, kFailure, kError, kSkipped };

Outcome outcome_of(Status status) {
  switch (status) {
    case Status::kFail:
      return Outcome::kFailure;
    case Status::kInconclusive:
      return Outcome::kError;
    case Status::kNotObserved:
    case Status::kNotApplicable:
    case Status::kSkipped:
    case Status::kWaived:
      return Outcome::kSkipped;
    case Status::kPass:
    case Status::kWarn:
      break;
  }
  return Outcome::kPassed;
}

/// U+FFFE and U+FFFF are UTF-8 and no characters of XML.
std::string xml_escaped(std::string_view text) {
  std::string escaped = html_escaped(text);
  for (const std::string_view none : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    for (std::size_t at = escaped.find(none); at != std::string::npos; at = escaped.find(none))
      escaped.replace(at, none.size(), "?");
  return escaped;
}

/// A newline in an attribute would come back as a space.
std::string attribute(std::string_view name, std::string_view value) {
  std::string text;
  for (const char c : xml_escaped(value)) {
    if (c == '\n')
      text += "&#10;";
    else
      text += c;
  }
  return ' ' + std::string(name) + "=\"" + text + '"';
}

std::string attribute(std::string_view name, std::uint64_t value) {
  return attribute(name, std::to_string(value));
}

std::string seconds(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

std::string evidence_text(const Report& report, const Finding& finding) {
  std::string text = finding.message + '\n';
  if (finding.cause)
    text += "cause: " + finding.cause->id() + ": " + cause_meaning(report, *finding.cause) +
            "\nremedy: " + cause_remedy(report, *finding.cause) + '\n';
  for (const Evidence& row : finding.evidence) {
    const bool lines = row.value.find('\n') != std::string::npos;
    text += row.name + (lines ? ":\n" : ": ") + row.value + '\n';
  }
  return text;
}

std::string outcome_xml(const Report& report, const Finding& finding) {
  const std::string name(status_name(finding.status));
  const std::string text = xml_escaped(evidence_text(report, finding));
  switch (outcome_of(finding.status)) {
    case Outcome::kFailure:
      return "<failure" + attribute("type", finding.cause ? finding.cause->id() : name) +
             attribute("message", finding.message) + '>' + text + "</failure>";
    case Outcome::kError:
      return "<error" + attribute("type", name) + attribute("message", finding.message) + '>' +
             text + "</error>";
    case Outcome::kSkipped:
      return "<skipped" + attribute("message", name + ": " + finding.message) + "/>";
    case Outcome::kPassed:
      break;
  }
  const std::string mark = finding.status == Status::kWarn ? "warn: " : "";
  return "<system-out>" + mark + text + "</system-out>";
}

/// Readers take two cases of one name for one: the second is numbered.
std::string cases_xml(const Report& report) {
  std::map<std::string, int> seen;
  std::string xml;
  for (const Finding& finding : report.checks) {
    const int number = ++seen[finding.check];
    const std::string suffix = number > 1 ? " (" + std::to_string(number) + ")" : "";
    xml += "    <testcase" +
           attribute("classname", "ckptverify." + report.command + '.' +
                                      finding.check.substr(0, finding.check.find('.'))) +
           attribute("name", finding.check + suffix) + " time=\"0\">" +
           outcome_xml(report, finding) + "</testcase>\n";
  }
  return xml;
}

std::string counts_xml(const Report& report) {
  std::map<Outcome, std::uint64_t> counts;
  for (const Finding& finding : report.checks) ++counts[outcome_of(finding.status)];
  return attribute("tests", report.checks.size()) +
         attribute("failures", counts[Outcome::kFailure]) +
         attribute("errors", counts[Outcome::kError]) +
         attribute("skipped", counts[Outcome::kSkipped]) +
         attribute("time", seconds(report.timings.wall_s));
}

std::string properties_xml(const Report& report) {
  std::string xml = "    <properties>\n";
  const auto property = [&](std::string_view name, std::string_view value) {
    if (!value.empty())
      xml += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
  };
  property("verdict", verdict_name(report.verdict));
  if (!report.causes.empty()) property("cause", report.causes.front().cause.id());
  property("next", next_step(report));
  property("fingerprint", report.fingerprint);
  property("repeat command", report.repeat_command);
  for (const auto& [name, value] : report.environment) property(name, value);
  return xml + "    </properties>\n";
}

}  // namespace

std::string report_junit(const Report& report) {
  const std::string counts = counts_xml(report);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
         attribute("name", "ckptverify " + report.command) + counts + ">\n  <testsuite" +
         attribute("name", "ckptverify " + report.command + ' ' + report.subject) + counts + ">\n" +
         properties_xml(report) + cases_xml(report) + "  </testsuite>\n</testsuites>\n";
}

}  // namespace ckptverify
