#include "src/report/markdown.h"

#include <algorithm>

#include "src/report/reason.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

/// A paragraph of its own.
std::string fact(std::string_view name, const std::string& markdown) {
  return "**" + std::string(name) + "** " + markdown + "\n\n";
}

std::string partings_fact(const Report& report) {
  const std::vector<Parting> found = partings(report);
  if (found.empty()) return {};
  return fact("First apart", markdown_escaped(parting_text(found.front())));
}

std::string facts(const Report& report) {
  std::string text;
  for (std::size_t i = 0; i < report.causes.size(); ++i) {
    const Cause& cause = report.causes[i].cause;
    text += fact(i == 0 ? "Cause" : "Also",
                 markdown_code(cause.id()) + ": " + markdown_escaped(cause_meaning(report, cause)));
  }
  if (const Finding* deciding = deciding_check(report))
    text += fact(report.verdict == Verdict::kFail ? "First seen" : "Why",
                 markdown_code(deciding->check) + ": " + markdown_escaped(deciding->message));
  text += partings_fact(report);
  text += fact(report.causes.empty() ? "Next" : "Remedy", markdown_escaped(next_step(report)));
  if (!report.repeat_command.empty()) text += fact("Repeat", markdown_code(report.repeat_command));
  return text;
}

std::string open_checks(const Report& report) {
  std::string rows;
  for (const Status status : {Status::kFail, Status::kInconclusive, Status::kWarn, Status::kWaived})
    for (const Finding& finding : report.checks)
      if (finding.status == status)
        rows += "| " + std::string(status_name(status)) + " | " +
                markdown_code(finding.check, Place::kCell) + " | " +
                markdown_escaped(finding.message) + " |\n";
  if (rows.empty()) return {};
  return "| status | check | what was found |\n|---|---|---|\n" + rows + '\n';
}

/// The blank lines make what is inside Markdown again.
std::string folded(const std::vector<std::string>& sentences, std::string_view what) {
  if (sentences.empty()) return {};
  std::string text = "<details><summary>" + std::to_string(sentences.size()) + ' ' +
                     std::string(what) + "</summary>\n\n";
  for (const std::string& sentence : sentences) text += "- " + markdown_escaped(sentence) + '\n';
  return text + "\n</details>\n\n";
}

std::string footer(const Report& report) {
  std::string text = markdown_code(report.subject) + ": " + status_counts(report.checks);
  if (const std::string killed = kill_sentence(report); !killed.empty()) text += "; " + killed;
  if (!report.fingerprint.empty()) text += "; fingerprint " + markdown_code(report.fingerprint);
  if (!report.output_directory.empty())
    text += "; files in " + markdown_code(report.output_directory);
  return text + '\n';
}

}  // namespace

std::string markdown_escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_{}[]<>()#+-!|~&$";
  constexpr std::string_view kHarmlessInside = "(){}+-!#";  // markup only where a line begins
  std::string escaped;
  for (const char c : one_line(text)) {
    const bool markup = kMarkup.find(c) != std::string_view::npos;
    if (markup && (escaped.empty() || kHarmlessInside.find(c) == std::string_view::npos))
      escaped += '\\';
    escaped += c;
    if (c == '@' || c == '#') escaped += "<!-- -->";  // names nobody and no issue
  }
  return escaped;
}

std::string markdown_code(std::string_view text, Place place) {
  std::string code;
  std::size_t run = 0;
  std::size_t longest = 0;
  for (const char c : one_line(text)) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|' && place == Place::kCell) code += '\\';
    code += c;
  }
  const std::string fence(longest + 1, '`');
  const bool padded = code.empty() || code.front() == '`' || code.back() == '`';
  const std::string pad = padded ? " " : "";
  return fence + pad + code + pad + fence;
}

std::string report_markdown(const Report& report) {
  return "## " + verdict_word(report.verdict) + ": " + markdown_escaped(verdict_sentence(report)) +
         "\n\n" + facts(report) + open_checks(report) + folded(report.proven, "proven") +
         folded(report.not_proven, "not proven") + footer(report);
}

}  // namespace ckptverify
