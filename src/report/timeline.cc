#include "src/report/timeline.h"

#include <algorithm>
#include <cmath>

#include "src/report/markup.h"
#include "src/report/svg.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

/// How a phase ended, in the order of the legend.
enum class Ending { kDone, kKilled, kEarly, kWrong };

struct EndingRow {
  Ending ending;
  std::string_view style;
  std::string_view meaning;
};

constexpr EndingRow kEndings[] = {
    {Ending::kDone, "done", "ended by itself"},
    {Ending::kKilled, "killed", "killed by the gate, as planned"},
    {Ending::kEarly, "early", "had ended before the kill"},
    {Ending::kWrong, "wrong", "crashed, hung or refused"},
};

Ending ending_of(const PhaseRecord& phase) {
  if (phase.exit.ends_with("sent by us")) return Ending::kKilled;
  if (phase.exit == "exit 0") return phase.kill.empty() ? Ending::kDone : Ending::kEarly;
  return Ending::kWrong;
}

std::string_view style_of(Ending ending) {
  return kEndings[static_cast<std::size_t>(ending)].style;
}

std::string facts_of(const PhaseRecord& phase) {
  std::string facts = duration_text(phase.wall_s);
  if (phase.first_step > 0)
    facts +=
        ", steps " + std::to_string(phase.first_step) + " to " + std::to_string(phase.last_step);
  if (ending_of(phase) != Ending::kKilled) facts += ", " + phase.exit;
  if (!phase.kill.empty()) facts += ", " + phase.kill;
  return facts;
}

/// A share of the track in per cent, one decimal.
std::string per_cent(double share) {
  return figure_text(std::round(std::clamp(share, 0.0, 1.0) * 1000) / 10) + '%';
}

std::string lane(const PhaseRecord& phase, double end_s) {
  const double start = phase.started_s / end_s;
  return "<div class=\"lane\">" + element("span", "name", phase.name) +
         "<span class=\"track\"><span class=\"bar " + std::string(style_of(ending_of(phase))) +
         "\" style=\"left:" + per_cent(start) + ";width:" + per_cent(phase.wall_s / end_s) +
         "\"></span></span>" + element("span", "facts", facts_of(phase)) + "</div>";
}

std::string axis(double end_s) {
  constexpr double kEdge = 0.05;  // where half a label would stick out of the track
  std::string html = "<div class=\"lane ruler\"><span></span><span class=\"track\">";
  for (const double second : round_ticks(0, end_s, 5)) {
    const double share = second / end_s;
    const std::string_view edge = share < kEdge ? " first" : share > 1 - kEdge ? " last" : "";
    html += "<span class=\"tick" + std::string(edge) + "\" style=\"left:" + per_cent(share) +
            "\">" + figure_text(second) + " s</span>";
  }
  return html + "</span><span></span></div>";
}

std::string legend(const std::vector<PhaseRecord>& phases) {
  std::string html = "<p class=\"legend\">";
  for (const EndingRow& row : kEndings) {
    const bool occurs = std::any_of(phases.begin(), phases.end(), [&](const PhaseRecord& phase) {
      return ending_of(phase) == row.ending;
    });
    if (!occurs) continue;
    html += "<span class=\"key\"><span class=\"bar " + std::string(row.style) + "\"></span>" +
            html_escaped(row.meaning) + "</span>";
  }
  return html + "</p>";
}

std::string commands(const std::vector<PhaseRecord>& phases) {
  std::string html = "<details><summary>Commands, logs and events</summary>";
  for (const PhaseRecord& phase : phases) {
    std::string command;
    for (const std::string& argument : phase.command)
      command += (command.empty() ? "" : " ") + argument;
    html += element("h3", phase.name) + command_html("pre", command) +
            "<p class=\"dim\">exit: " + html_escaped(phase.exit);
    if (!phase.log.empty()) html += "; log <code>" + html_escaped(phase.log) + "</code>";
    if (!phase.events.empty()) html += "; events <code>" + html_escaped(phase.events) + "</code>";
    html += "</p>";
  }
  return html + "</details>";
}

}  // namespace

std::string timeline_html(const Report& report) {
  if (report.phases.empty()) return {};
  double end_s = 0;
  for (const PhaseRecord& phase : report.phases)
    end_s = std::max(end_s, phase.started_s + phase.wall_s);
  if (!(end_s > 0) || !std::isfinite(end_s)) end_s = 1;
  std::string html = "<h2 id=\"timeline\">Timeline</h2>" + legend(report.phases);
  for (const PhaseRecord& phase : report.phases) html += lane(phase, end_s);
  html += axis(end_s);
  const Timings& timings = report.timings;
  html += "<p class=\"dim timing\">In all " + duration_text(timings.wall_s) + ": " +
          duration_text(timings.trainer_s) + " in trainers, " + duration_text(timings.copy_s) +
          " copying";
  if (!timings.copy_method.empty()) html += " (" + html_escaped(timings.copy_method) + ')';
  return html + ", " + duration_text(timings.own_s) + " reading, hashing and judging.</p>" +
         commands(report.phases) + '\n';
}

}  // namespace ckptverify
