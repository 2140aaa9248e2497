#include "src/report/svg.h"

#include <algorithm>
#include <cmath>

#include "src/report/words.h"

namespace ckptverify {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 220;
constexpr double kLeft = 64;
constexpr double kRight = 12;
constexpr double kTop = 12;
constexpr double kBottom = 28;

/// What a drawing spans, in steps and in values.
struct Span {
  double first_step = 0;
  double last_step = 1;
  double low = 0;
  double high = 1;
  bool empty = true;

  void add(double step, double value) {
    if (empty) {
      *this = {step, step, value, value, false};
      return;
    }
    first_step = std::min(first_step, step);
    last_step = std::max(last_step, step);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double x(double step) const {
    const double width = last_step > first_step ? last_step - first_step : 1;
    return kLeft + (step - first_step) / width * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    if (!(high > low)) return kTop + (kHeight - kTop - kBottom) / 2;
    // Halved first: the distance of two finite values may be infinite.
    const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
};

std::string attribute(std::string_view name, double value) {
  return ' ' + std::string(name) + "=\"" + figure_text(value) + '"';
}

std::string line(std::string_view style, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(style) + '"' + attribute("x1", x1) + attribute("y1", y1) +
         attribute("x2", x2) + attribute("y2", y2) + "/>";
}

std::string label(double x, double y, std::string_view anchor, const std::string& text) {
  return "<text" + attribute("x", x) + attribute("y", y) + " text-anchor=\"" + std::string(anchor) +
         "\">" + html_escaped(text) + "</text>";
}

std::string curve_path(const Curve& curve, const Span& span) {
  std::string points;
  std::string dots;
  for (const auto& [step, value] : curve.points) {
    if (!std::isfinite(value)) continue;
    const double x = span.x(static_cast<double>(step));
    const double y = span.y(value);
    points += (points.empty() ? "" : " ") + figure_text(x) + ',' + figure_text(y);
    if (curve.run != "reference")
      dots += "<circle" + attribute("cx", x) + attribute("cy", y) + " r=\"3\"/>";
  }
  const std::string style = curve.run == "reference" ? "reference" : "restored";
  return "<g class=\"" + style + "\"><polyline points=\"" + points + "\"/>" + dots + "</g>";
}

std::string axes(const Span& span) {
  const double bottom = kHeight - kBottom;
  std::string svg = line("axis", kLeft, bottom, kWidth - kRight, bottom) +
                    line("axis", kLeft, kTop, kLeft, bottom);
  svg += label(kLeft - 6, span.y(span.low) + 4, "end", figure_text(span.low));
  if (span.high > span.low)
    svg += label(kLeft - 6, span.y(span.high) + 4, "end", figure_text(span.high));
  svg += label(kLeft, kHeight - 8, "start", "step " + figure_text(span.first_step));
  svg += label(kWidth - kRight, kHeight - 8, "end", "step " + figure_text(span.last_step));
  return svg;
}

std::string opening(double height, const std::string& description) {
  return "<svg viewBox=\"0 0 " + figure_text(kWidth) + ' ' + figure_text(height) +
         "\" role=\"img\" aria-label=\"" + html_escaped(description) + "\">";
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string curves_svg(const std::vector<Curve>& curves, const std::string& metric,
                       std::uint64_t kill_step) {
  Span span;
  for (const Curve& curve : curves)
    for (const auto& [step, value] : curve.points)
      if (curve.metric == metric && std::isfinite(value))
        span.add(static_cast<double>(step), value);
  if (span.empty) return {};
  std::string svg = opening(kHeight, metric + " of the reference and the restored run by step");
  svg += axes(span);
  for (const Curve& curve : curves)
    if (curve.metric == metric) svg += curve_path(curve, span);
  const auto kill = static_cast<double>(kill_step);
  if (kill_step > 0 && kill >= span.first_step && kill <= span.last_step) {
    svg += line("kill", span.x(kill), kTop, span.x(kill), kHeight - kBottom);
    svg += label(span.x(kill) + 5, kTop + 10, "start", "kill");
  }
  return svg + "</svg>";
}

std::string timeline_svg(const std::vector<PhaseRecord>& phases) {
  constexpr double kRow = 26;
  constexpr double kNames = 150;
  double end = 0;
  for (const PhaseRecord& phase : phases) end = std::max(end, phase.started_s + phase.wall_s);
  if (!(end > 0) || !std::isfinite(end)) return {};
  const double width = kWidth - kNames - kRight - 60;
  const double height = kRow * static_cast<double>(phases.size()) + 8;
  std::string svg = opening(height, "the phases over time");
  double y = 4;
  for (const PhaseRecord& phase : phases) {
    const double x = kNames + phase.started_s / end * width;
    const double length = std::max(2.0, phase.wall_s / end * width);
    svg += label(kNames - 8, y + 16, "end", phase.name);
    svg += "<rect class=\"" + std::string(phase.kill.empty() ? "phase" : "phase killed") + '"' +
           attribute("x", x) + attribute("y", y + 3) + attribute("width", length) +
           attribute("height", kRow - 8) + " rx=\"3\"/>";
    svg += label(x + length + 5, y + 16, "start", duration_text(phase.wall_s));
    y += kRow;
  }
  return svg + "</svg>";
}

}  // namespace ckptverify
