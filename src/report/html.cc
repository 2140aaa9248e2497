#include "src/report/html.h"

#include <algorithm>

#include "ckptverify/count_text.h"
#include "src/report/composition.h"
#include "src/report/findings_html.h"
#include "src/report/markup.h"
#include "src/report/reason.h"
#include "src/report/style.h"
#include "src/report/svg.h"
#include "src/report/timeline.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

std::string fact(std::string_view name, const std::string& html) {
  return element("dt", name) + "<dd>" + html + "</dd>";
}

std::string anchor_of(const Report& report, const Finding& finding) {
  const auto index = static_cast<std::size_t>(&finding - report.checks.data());
  return anchors_of(report.checks)[index];
}

/// The id of a check, as a link to where it is shown in full, and what it says.
std::string seen_at(const Report& report, const Finding& finding) {
  return "<a class=\"mono\" href=\"#" + anchor_of(report, finding) + "\">" +
         html_escaped(finding.check) + "</a>: " + html_escaped(finding.message);
}

std::string causes_facts(const Report& report) {
  std::string html;
  for (std::size_t i = 0; i < report.causes.size(); ++i) {
    const Cause& cause = report.causes[i].cause;
    html += fact(i == 0 ? "Cause" : "Also",
                 "<strong class=\"mono\">" + html_escaped(cause.id()) +
                     "</strong>: " + html_escaped(cause_meaning(report, cause)));
  }
  return html;
}

/// The earliest step at which a curve parts, with its figures, and from where on the others do.
std::string partings_fact(const Report& report) {
  const std::vector<Parting> found = partings(report);
  if (found.empty()) return {};
  std::string text = parting_text(found.front());
  for (std::size_t i = 1; i < found.size(); ++i)
    text += "; " + found[i].metric + " from step " + std::to_string(found[i].step);
  return fact("First apart", html_escaped(text));
}

std::string deciding_facts(const Report& report, const Finding& deciding) {
  if (report.verdict == Verdict::kFail)
    return fact("First seen", seen_at(report, deciding)) + partings_fact(report);
  const auto open =
      std::count_if(report.checks.begin(), report.checks.end(),
                    [](const Finding& finding) { return finding.status == Status::kInconclusive; });
  std::string why = seen_at(report, deciding);
  if (open > 1)
    why += ". <a href=\"#open\">" + count_text(static_cast<std::uint64_t>(open - 1), "more check") +
           "</a> could not tell.";
  return fact("Why", why);
}

/// What a pass rests on, and what it leaves open.
std::string passed_fact(const Report& report) {
  std::string html = html_escaped(kill_sentence(report));
  const auto part = [&](std::string_view anchor, std::size_t count, std::string_view what) {
    if (count == 0) return;
    html += std::string(html.empty() ? "" : "; ") + "<a href=\"#" + std::string(anchor) + "\">" +
            std::to_string(count) + ' ' + std::string(what) + "</a>";
  };
  part("proven", report.proven.size(), "proven");
  part("unproven", report.not_proven.size(), "not proven");
  return html.empty() ? html : fact("Shown", html);
}

std::string meta_part(const Report& report) {
  std::string html = "<p class=\"meta\">" + html_escaped(status_counts(report.checks)) + "<br>" +
                     html_escaped(report.command) + " <code>" + html_escaped(report.subject) +
                     "</code>";
  const std::string killed = kill_sentence(report);
  if (report.verdict != Verdict::kPass && !killed.empty()) html += ", " + killed;
  if (!report.fingerprint.empty())
    html += "<br>fingerprint <code>" + html_escaped(report.fingerprint) + "</code>";
  return html + "</p>";
}

std::string verdict_part(const Report& report, const Finding* deciding) {
  const std::string verdict(verdict_name(report.verdict));
  std::string html = "<header class=\"verdict " + verdict + "\">" +
                     element("span", "status " + verdict, verdict) +
                     element("h1", verdict_sentence(report)) + "<dl class=\"facts\">";
  html += causes_facts(report);
  if (report.verdict == Verdict::kPass) html += passed_fact(report);
  if (deciding != nullptr) html += deciding_facts(report, *deciding);
  html += fact(report.causes.empty() ? "Next" : "Remedy", html_escaped(next_step(report)));
  if (report.verdict != Verdict::kPass && !report.repeat_command.empty())
    html += fact("Then", command_html("code", report.repeat_command));
  return html + "</dl>" + meta_part(report) + "</header>\n";
}

std::string digest_cell(std::string_view place, std::string_view digest, std::string_view before) {
  const std::string opening = "<td data-place=\"" + std::string(place) + '"';
  if (digest.empty()) return opening + " class=\"dim\">not seen</td>";
  std::string_view style;
  if (!before.empty()) style = digest == before ? " class=\"equals\"" : " class=\"parts\"";
  return opening + std::string(style) + "><code title=\"" + html_escaped(digest) + "\">" +
         html_escaped(digest_text(digest)) + "</code></td>";
}

std::string identity_part(const std::vector<IdentityRow>& rows) {
  if (rows.empty()) return {};
  std::string html =
      "<h2 id=\"state\">Live = disk = restored<small>digests of the state, the first 12 digits"
      "</small></h2><table class=\"identity\"><thead><tr><th>component</th><th>live at the "
      "save</th>"
      "<th>on disk</th><th>live after the restore</th><th>status</th></tr></thead><tbody>";
  for (const IdentityRow& row : rows)
    html += "<tr>" + element("td", row.component) + digest_cell("live", row.live, {}) +
            digest_cell("disk", row.disk, row.live) +
            digest_cell("restored", row.restored, row.disk.empty() ? row.live : row.disk) + "<td>" +
            status_mark(row.status) + "</td></tr>\n";
  return html + "</tbody></table>\n";
}

/// What the check of the curve's metric says of it: where it parts, or the check's sentence.
std::string curve_caption(const Report& report, const std::string& metric, const Parting* parting) {
  std::string html = "<figcaption>" + element("b", metric_title(metric));
  if (parting != nullptr)
    return html + element("span", "status fail", "parts at step " + std::to_string(parting->step)) +
           "</figcaption>";
  const auto check =
      std::find_if(report.checks.begin(), report.checks.end(),
                   [&](const Finding& finding) { return finding.check == "trajectory." + metric; });
  if (check != report.checks.end()) html += element("span", "dim", check->message);
  return html + "</figcaption>";
}

std::string curve_key(std::string_view run, std::string_view words) {
  return "<span class=\"key\"><svg viewBox=\"0 0 22 9\" aria-hidden=\"true\"><g class=\"" +
         std::string(run) + "\"><polyline points=\"3,4.5 19,4.5\"/></g></svg>" +
         std::string(words) + "</span>";
}

std::string curves_part(const Report& report) {
  const std::vector<Parting> parted = partings(report);
  std::string html;
  std::vector<std::string> done;
  for (const Curve& curve : report.curves) {
    if (std::find(done.begin(), done.end(), curve.metric) != done.end()) continue;
    done.push_back(curve.metric);
    const auto parting = std::find_if(parted.begin(), parted.end(), [&](const Parting& one) {
      return one.metric == curve.metric;
    });
    const Parting* found = parting == parted.end() ? nullptr : &*parting;
    const std::string drawing = curves_svg(
        report.curves, curve.metric,
        {.kill_step = report.save_step, .parted_step = found == nullptr ? 0 : found->step});
    if (drawing.empty()) continue;
    html += "<figure>" + curve_caption(report, curve.metric, found) + drawing + "</figure>\n";
  }
  if (html.empty()) return {};
  return "<h2 id=\"curves\">Curves</h2><p class=\"legend\">" +
         curve_key("reference", "reference, never killed") +
         curve_key("restored", "resumed after the kill") + "</p><div class=\"curves\">" + html +
         "</div>\n";
}

std::string environment_part(const Report& report) {
  std::string html = "<h2 id=\"repeat\">How to repeat it</h2>";
  if (!report.repeat_command.empty()) html += command_html("pre", report.repeat_command);
  html += "<dl class=\"values\">";
  const auto row = [&](std::string_view name, std::string_view value) {
    html += element("dt", name) + element("dd", value);
  };
  if (!report.output_directory.empty()) row("files", report.output_directory);
  if (report.command == "run") row("seed", std::to_string(report.seed));
  for (const auto& [name, value] : report.environment) row(name, value);
  return html + "</dl>\n";
}

/// Of a pass what was proven comes first; else what went wrong does.
std::string body(const Report& report, const Finding* deciding) {
  const bool passed = report.verdict == Verdict::kPass;
  const Folded folded = passed ? Folded::kNo : Folded::kYes;
  const std::string sentences =
      sentences_html("proven", "What was proven", report.proven, folded) +
      sentences_html("unproven", "What was not proven", report.not_proven, folded);
  std::string html;
  if (passed) html += sentences;
  html += open_findings_html(report, deciding);
  html += timeline_html(report);
  html += identity_part(report.identity);
  html += curves_part(report);
  html += composition_html(report);
  html += all_checks_html(report);
  if (!passed) html += sentences;
  return html + environment_part(report);
}

/// Links to the parts that the page has.
std::string contents(const std::string& page) {
  struct Part {
    std::string_view anchor;
    std::string_view title;
  };
  constexpr Part kParts[] = {{"failed", "What failed"},    {"open", "Could not be told"},
                             {"warnings", "Warnings"},     {"timeline", "Timeline"},
                             {"state", "State"},           {"curves", "Curves"},
                             {"checkpoint", "Checkpoint"}, {"checks", "All checks"},
                             {"proven", "Proven"},         {"unproven", "Not proven"},
                             {"repeat", "Repeat it"}};
  std::string html = "<nav>";
  for (const Part& part : kParts) {
    const std::string anchor(part.anchor);
    if (page.find("<h2 id=\"" + anchor + '"') == std::string::npos) continue;
    html += "<a href=\"#" + anchor + "\">" + std::string(part.title) + "</a> ";
  }
  return html + "</nav>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::string title =
      "ckptverify " + report.command + ": " + std::string(verdict_name(report.verdict));
  if (!report.causes.empty()) title += ", " + report.causes.front().cause.id();
  const Finding* deciding = deciding_check(report);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">" +
      element("title", title) + "<style>" + std::string(page_style()) +
      "</style></head><body><main>\n";
  const std::string parts = body(report, deciding);
  html += verdict_part(report, deciding) + contents(parts) + parts;
  return html + "</main></body></html>\n";
}

}  // namespace ckptverify
