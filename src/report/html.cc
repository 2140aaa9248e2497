#include "src/report/html.h"

#include "src/report/svg.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

// Colours carry no meaning alone: every status is also written out.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--back:#fff;--text:#1c1f23;--dim:#667079;--rule:#dde1e5;
--card:#f6f7f9;
--pass:#19723a;--fail:#b3261e;--open:#8a5a00;--first:#2b6cb0;--second:#c2410c}
@media(prefers-color-scheme:dark){:root{--back:#15181b;--text:#e6e8ea;--dim:#9aa4ad;--rule:#30363c;
--card:#1e2226;--pass:#5fd08a;--fail:#ff8a80;--open:#f0bd5c;--first:#7db8f0;--second:#ff9d66}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 .6rem}
h2{font-size:1.1rem;margin:2.2rem 0 .6rem;padding-top:.8rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;margin:1rem 0 .2rem}
code,pre,.mono{font:.875em/1.5 ui-monospace,monospace;overflow-wrap:anywhere}
pre{background:var(--card);padding:.6rem .8rem;border-radius:6px;white-space:pre-wrap;
margin:.3rem 0}
.verdict{border-left:6px solid var(--open);background:var(--card);padding:1rem 1.2rem;
border-radius:6px}
.verdict.pass{border-color:var(--pass)}.verdict.fail{border-color:var(--fail)}
.dim{color:var(--dim)}.status{white-space:nowrap;font-weight:600}
.status.pass{color:var(--pass)}.status.fail{color:var(--fail)}
.status.warn,.status.inconclusive,.status.waived{color:var(--open)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;
border-bottom:1px solid var(--rule)}
th{font-weight:600;color:var(--dim)}
details{margin:.2rem 0}summary{cursor:pointer}
svg{width:100%;height:auto;max-width:44rem;display:block}
svg text{fill:var(--dim);font:11px system-ui,sans-serif}
.axis{stroke:var(--rule)}.kill{stroke:var(--fail);stroke-dasharray:4 3}
polyline{fill:none;stroke-width:2}.reference polyline{stroke:var(--first);stroke-width:4;
opacity:.55}
.restored polyline{stroke:var(--second)}.restored circle{fill:var(--second)}
.phase{fill:var(--first)}.phase.killed{fill:var(--fail)}
.key::before{content:"";display:inline-block;width:1.2em;height:.3em;margin:0 .4em .2em 1em;
background:var(--first)}
.key.second::before{background:var(--second)}
@media(max-width:40rem){.checks thead{display:none}.checks tr{display:block;
border-bottom:1px solid var(--rule);
padding:.4rem 0}.checks td{display:block;border:0;padding:.1rem 0}}
)css";

std::string element(std::string_view tag, std::string_view text) {
  return '<' + std::string(tag) + '>' + html_escaped(text) + "</" + std::string(tag) + '>';
}

std::string status_mark(Status status) {
  const std::string name(status_name(status));
  return "<span class=\"status " + name + "\">" + name + "</span>";
}

std::string verdict_part(const Report& report) {
  const std::string verdict(verdict_name(report.verdict));
  std::string html = "<section class=\"verdict " + verdict + "\"><span class=\"status " + verdict +
                     "\">" + verdict + "</span>" + element("h1", verdict_sentence(report));
  for (std::size_t i = 0; i < report.causes.size(); ++i) {
    const Cause& cause = report.causes[i].cause;
    html += "<p>" + std::string(i == 0 ? "Cause: " : "Then: ") + "<strong class=\"mono\">" +
            html_escaped(cause.id()) + "</strong>. " + html_escaped(cause_meaning(report, cause)) +
            "</p>";
    if (i == 0) html += "<p>Remedy: " + html_escaped(cause_remedy(cause)) + "</p>";
  }
  html += "<p class=\"dim\">" + html_escaped(status_counts(report.checks)) + "<br>" +
          html_escaped(report.command) + " <code>" + html_escaped(report.subject) + "</code>";
  if (const std::string killed = kill_sentence(report); !killed.empty()) html += "<br>" + killed;
  if (!report.fingerprint.empty())
    html += "<br>fingerprint <code>" + html_escaped(report.fingerprint) + "</code>";
  return html + "</p></section>\n";
}

std::string sentences_part(std::string_view title, const std::vector<std::string>& sentences) {
  if (sentences.empty()) return {};
  std::string html = element("h2", title) + "<ul>";
  for (const std::string& sentence : sentences) html += element("li", sentence);
  return html + "</ul>\n";
}

std::string digest_cell(const std::string& digest) {
  if (digest.empty()) return "<td class=\"dim\">not seen</td>";
  return "<td><code>" + html_escaped(digest) + "</code></td>";
}

std::string identity_part(const std::vector<IdentityRow>& rows) {
  if (rows.empty()) return {};
  std::string html =
      "<h2>Live = disk = restored</h2><div class=\"scroll\"><table><thead><tr><th>component</th>"
      "<th>live at the save</th><th>on disk</th><th>live after the restore</th><th>status</th>"
      "</tr></thead><tbody>";
  for (const IdentityRow& row : rows)
    html += "<tr>" + element("td", row.component) + digest_cell(row.live) + digest_cell(row.disk) +
            digest_cell(row.restored) + "<td>" + status_mark(row.status) + "</td></tr>";
  return html + "</tbody></table></div>\n";
}

std::string curves_part(const Report& report) {
  std::string html;
  std::vector<std::string> done;
  for (const Curve& curve : report.curves) {
    bool drawn = false;
    for (const std::string& metric : done) drawn = drawn || metric == curve.metric;
    if (drawn) continue;
    done.push_back(curve.metric);
    html += element("h3", curve.metric) + curves_svg(report.curves, curve.metric, report.save_step);
  }
  if (html.empty()) return {};
  return "<h2>Curves <span class=\"dim key\">reference</span><span class=\"dim key "
         "second\">restored"
         "</span></h2>" +
         html + '\n';
}

std::string checks_part(const std::vector<Finding>& checks) {
  if (checks.empty()) return {};
  std::string html =
      "<h2>Checks</h2><table class=\"checks\"><thead><tr><th>status</th><th>check</th><th>what was "
      "found</th></tr></thead><tbody>";
  for (const Finding& finding : checks) {
    html += "<tr><td>" + status_mark(finding.status) + "</td><td class=\"mono\">" +
            html_escaped(finding.check);
    if (finding.cause) html += "<br><strong>" + html_escaped(finding.cause->id()) + "</strong>";
    html += "</td><td>" + html_escaped(finding.message);
    if (!finding.evidence.empty()) {
      html += finding.status == Status::kFail ? "<details open>" : "<details>";
      html += "<summary class=\"dim\">evidence</summary>";
      for (const Evidence& row : finding.evidence)
        html +=
            "<div class=\"dim\">" + html_escaped(row.name) + "</div>" + element("pre", row.value);
      html += "</details>";
    }
    html += "</td></tr>";
  }
  return html + "</tbody></table>\n";
}

std::string phases_part(const Report& report) {
  if (report.phases.empty()) return {};
  std::string html = "<h2>Phases</h2>" + timeline_svg(report.phases);
  for (const PhaseRecord& phase : report.phases) {
    std::string command;
    for (const std::string& argument : phase.command)
      command += (command.empty() ? "" : " ") + argument;
    std::string facts = duration_text(phase.wall_s) + ", " + phase.exit;
    if (!phase.kill.empty()) facts += ", " + phase.kill;
    if (phase.first_step > 0)
      facts +=
          ", steps " + std::to_string(phase.first_step) + " to " + std::to_string(phase.last_step);
    html += "<details><summary>" + html_escaped(phase.name) + " <span class=\"dim\">" +
            html_escaped(facts) + "</span></summary>" + element("pre", command) +
            "<p class=\"dim\">log <code>" + html_escaped(phase.log) + "</code>, events <code>" +
            html_escaped(phase.events) + "</code></p></details>";
  }
  const Timings& timings = report.timings;
  return html + "<p class=\"dim\">In all " + duration_text(timings.wall_s) + ": " +
         duration_text(timings.trainer_s) + " in trainers, " + duration_text(timings.copy_s) +
         " copying (" + html_escaped(timings.copy_method) + "), " + duration_text(timings.own_s) +
         " reading, hashing and judging.</p>\n";
}

std::string environment_part(const Report& report) {
  std::string html = "<h2>How to repeat it</h2>";
  if (!report.repeat_command.empty()) html += element("pre", report.repeat_command);
  html += "<table><tbody>";
  const auto row = [&](std::string_view name, std::string_view value) {
    html += "<tr>" + element("th", name) + "<td><code>" + html_escaped(value) + "</code></td></tr>";
  };
  if (!report.output_directory.empty()) row("files", report.output_directory);
  if (report.command == "run") row("seed", std::to_string(report.seed));
  for (const auto& [name, value] : report.environment) row(name, value);
  return html + "</tbody></table>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::string title =
      "ckptverify " + report.command + ": " + std::string(verdict_name(report.verdict));
  if (!report.causes.empty()) title += ", " + report.causes.front().cause.id();
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">" +
      element("title", title) + "<style>" + std::string(kStyle) + "</style></head><body><main>\n";
  html += verdict_part(report);
  html += sentences_part("What was proven", report.proven);
  html += sentences_part("What was not", report.not_proven);
  html += identity_part(report.identity);
  html += curves_part(report);
  html += checks_part(report.checks);
  html += phases_part(report);
  html += environment_part(report);
  return html + "</main></body></html>\n";
}

}  // namespace ckptverify
