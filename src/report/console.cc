#include "src/report/console.h"

#include <algorithm>

#include "ckptverify/count_text.h"
#include "src/report/reason.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

struct Ink {
  Colour colour;

  std::string paint(std::string_view code, std::string_view text) const {
    if (colour == Colour::kOff) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  }
  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string status(Status status, std::string_view text) const {
    switch (status) {
      case Status::kPass:
        return paint("32", text);
      case Status::kFail:
        return paint("1;31", text);
      case Status::kWarn:
      case Status::kInconclusive:
      case Status::kWaived:
        return paint("33", text);
      case Status::kNotObserved:
      case Status::kNotApplicable:
      case Status::kSkipped:
        break;
    }
    return dim(text);
  }
};

void add_section(std::string& out, const Ink& ink, std::string_view title) {
  out += '\n' + ink.bold(title) + '\n';
}

void add_verdict(std::string& out, const Ink& ink, const Report& report) {
  const Status as_status = report.verdict == Verdict::kPass   ? Status::kPass
                           : report.verdict == Verdict::kFail ? Status::kFail
                                                              : Status::kInconclusive;
  const std::string word = verdict_word(report.verdict);
  out += ink.status(as_status, word) + "  " + wrapped(verdict_sentence(report), word.size() + 2) +
         '\n';
  for (std::size_t i = 0; i < report.causes.size(); ++i) {
    const RankedCause& ranked = report.causes[i];
    out += std::string(i == 0 ? "cause " : "then  ") + ink.bold(ranked.cause.id()) + '\n';
    if (i > 0) continue;
    out += "      " + wrapped(cause_meaning(report, ranked.cause), 6) + '\n';
    out += "      " + wrapped("Remedy: " + cause_remedy(report, ranked.cause), 6) + '\n';
  }
  if (const Finding* deciding = deciding_check(report)) {
    const bool failed = report.verdict == Verdict::kFail;
    const std::string text = printable(deciding->check + ": " + deciding->message);
    out += std::string(failed ? "seen  " : "why   ") + wrapped(text, 6) + '\n';
    if (!failed) out += "next  " + wrapped(next_step(report), 6) + '\n';
  }
  out += "      " + wrapped(status_counts(report.checks), 6) + '\n';
  out += "of    " + wrapped(printable(report.subject), 6) + '\n';
  if (const std::string killed = kill_sentence(report); !killed.empty()) {
    out += "      " + killed + '\n';
  }
  if (!report.fingerprint.empty()) out += "      fingerprint " + report.fingerprint + '\n';
}

void add_sentences(std::string& out, const Ink& ink, std::string_view title,
                   const std::vector<std::string>& sentences) {
  if (sentences.empty()) return;
  add_section(out, ink, title);
  for (const std::string& sentence : sentences)
    out += "  - " + wrapped(printable(sentence), 4) + '\n';
}

/// What was not observed is listed with its reasons before, where it is.
void add_checks(std::string& out, const Ink& ink, const Report& report) {
  const std::vector<Finding>& checks = report.checks;
  if (checks.empty()) return;
  add_section(out, ink, "Checks");
  std::size_t id_width = 0;
  for (const Finding& finding : checks) id_width = std::max(id_width, finding.check.size());
  id_width = std::min<std::size_t>(id_width, 28);
  constexpr std::size_t kStatusWidth = 14;  // "not-applicable"
  const std::size_t indent = 2 + kStatusWidth + 1 + id_width + 1;
  std::size_t listed_before = 0;
  for (const Finding& finding : checks) {
    if (finding.status == Status::kNotObserved && !report.not_proven.empty()) {
      ++listed_before;
      continue;
    }
    out += "  " + ink.status(finding.status, padded(status_name(finding.status), kStatusWidth)) +
           ' ' + padded(finding.check, id_width) + ' ';
    if (finding.check.size() > id_width) out += '\n' + std::string(indent, ' ');
    out += wrapped(printable(finding.message), indent) + '\n';
  }
  if (listed_before == 0) return;
  out += "  " + ink.status(Status::kNotObserved, padded("not-observed", kStatusWidth)) + ' ' +
         count_text(listed_before, "check") + ", listed under Not proven\n";
}

void add_evidence(std::string& out, const Ink& ink, const std::vector<Finding>& checks) {
  bool titled = false;
  for (const Finding& finding : checks) {
    const bool shown = finding.status == Status::kFail || finding.status == Status::kInconclusive ||
                       finding.status == Status::kWarn || finding.status == Status::kWaived;
    if (!shown || finding.evidence.empty()) continue;
    if (!titled) add_section(out, ink, "Evidence");
    titled = true;
    out += "  " + ink.status(finding.status, finding.check);
    if (finding.cause) out += " (" + finding.cause->id() + ")";
    out += '\n';
    for (const Evidence& row : finding.evidence) {
      const std::string value = printable(row.value);
      if (value.find('\n') == std::string::npos) {
        out += "    " + wrapped(printable(row.name) + ": " + value, 6) + '\n';
        continue;
      }
      out += "    " + printable(row.name) + ":\n";
      for (const std::string& line : lines_of(value)) out += "      | " + line + '\n';
    }
  }
}

void add_phases(std::string& out, const Ink& ink, const Report& report) {
  if (report.phases.empty()) return;
  add_section(out, ink, "Phases");
  std::size_t name_width = 0;
  for (const PhaseRecord& phase : report.phases)
    name_width = std::max(name_width, phase.name.size());
  for (const PhaseRecord& phase : report.phases) {
    std::string text = duration_text(phase.wall_s);
    if (phase.first_step > 0)
      text +=
          ", steps " + std::to_string(phase.first_step) + " to " + std::to_string(phase.last_step);
    text += ", " + (phase.kill.empty() ? phase.exit : phase.kill);
    out += "  " + padded(phase.name, name_width) + "  " + wrapped(printable(text), name_width + 4) +
           '\n';
  }
  const Timings& timings = report.timings;
  out +=
      "  " +
      wrapped("in all " + duration_text(timings.wall_s) + ": " + duration_text(timings.trainer_s) +
                  " in trainers, " + duration_text(timings.copy_s) + " copying" +
                  (timings.copy_method.empty() ? "" : " (" + timings.copy_method + ")") + ", " +
                  duration_text(timings.own_s) + " reading, hashing and judging",
              2) +
      '\n';
}

void add_where(std::string& out, const Report& report) {
  out += '\n';
  if (!report.output_directory.empty()) {
    const std::string directory = printable(report.output_directory);
    out += "files   " + directory + "\npage    " + directory + "/report.html\n";
  }
  if (!report.repeat_command.empty()) out += "repeat  " + printable(report.repeat_command) + '\n';
  if (report.command == "run") out += "seed    " + std::to_string(report.seed) + '\n';
}

}  // namespace

std::string report_console(const Report& report, Colour colour) {
  const Ink ink{colour};
  std::string out;
  add_verdict(out, ink, report);
  add_sentences(out, ink, "Proven", report.proven);
  add_sentences(out, ink, "Not proven", report.not_proven);
  add_checks(out, ink, report);
  add_evidence(out, ink, report.checks);
  add_phases(out, ink, report);
  add_where(out, report);
  return out;
}

}  // namespace ckptverify
