#include "src/report/svg.h"

#include <algorithm>
#include <cmath>

#include "src/report/markup.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

// Narrow enough that its text is still read on a phone, where one unit is less than a pixel.
constexpr double kWidth = 380;
constexpr double kHeight = 216;
constexpr double kRight = 14;
constexpr double kTop = 26;
constexpr double kBottom = 36;
constexpr double kLetter = 6.4;  // at most, of a digit in the drawings' type
constexpr int kValueTicks = 5;
constexpr int kStepTicks = 6;
constexpr std::size_t kDotsMax = 80;  // more of them run into one another

/// What a drawing spans, in steps and in values.
struct Span {
  double first_step = 0;
  double last_step = 1;
  double low = 0;
  double high = 1;
  bool empty = true;
  double left = 40;

  void add_step(double step) {
    if (empty) first_step = last_step = step;
    first_step = std::min(first_step, step);
    last_step = std::max(last_step, step);
  }
  void add(double step, double value) {
    add_step(step);
    if (empty) low = high = value;
    low = std::min(low, value);
    high = std::max(high, value);
    empty = false;
  }
  double x(double step) const {
    const double width = last_step > first_step ? last_step - first_step : 1;
    return left + (step - first_step) / width * (kWidth - left - kRight);
  }
  double y(double value) const {
    if (!(high > low)) return kTop + (kHeight - kTop - kBottom) / 2;
    // Halved first: the distance of two finite values may be infinite.
    const double share = (value / 2 - low / 2) / (high / 2 - low / 2);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
};

/// A tenth of a unit is finer than any screen shows.
std::string coordinate(double value) {
  return figure_text(std::round(value * 10) / 10);
}

std::string attribute(std::string_view name, double value) {
  return ' ' + std::string(name) + "=\"" + coordinate(value) + '"';
}

std::string line(std::string_view style, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + std::string(style) + '"' + attribute("x1", x1) + attribute("y1", y1) +
         attribute("x2", x2) + attribute("y2", y2) + "/>";
}

std::string label(double x, double y, std::string_view anchor, const std::string& text,
                  std::string_view style = {}) {
  const std::string named = style.empty() ? "" : " class=\"" + std::string(style) + '"';
  return "<text" + named + attribute("x", x) + attribute("y", y) + " text-anchor=\"" +
         std::string(anchor) + "\">" + html_escaped(text) + "</text>";
}

std::string circle(std::string_view style, double x, double y, double radius) {
  return "<circle class=\"" + std::string(style) + '"' + attribute("cx", x) + attribute("cy", y) +
         attribute("r", radius) + "/>";
}

std::string curve_path(const Curve& curve, const Span& span, std::uint64_t parted_step) {
  const bool reference = curve.run == "reference";
  std::string points;
  std::string marks;
  for (const auto& [step, value] : curve.points) {
    const double x = span.x(static_cast<double>(step));
    if (!std::isfinite(value)) {
      marks += label(x, kTop + 10, "middle", figure_text(value), "lost");
      continue;
    }
    const double y = span.y(value);
    points += (points.empty() ? "" : " ") + coordinate(x) + ',' + coordinate(y);
    if (reference) continue;
    if (curve.points.size() <= kDotsMax) marks += circle("dot", x, y, 2.5);
    if (step == parted_step) marks += circle("parted", x, y, 7);
  }
  return "<g class=\"" + std::string(reference ? "reference" : "restored") +
         "\"><polyline points=\"" + points + "\"/>" + marks + "</g>";
}

/// Not one between two others, and no two of a step.
std::vector<double> step_ticks(const Span& span) {
  std::vector<double> ticks;
  for (const double tick : round_ticks(span.first_step, span.last_step, kStepTicks))
    if (tick == std::floor(tick)) ticks.push_back(tick);
  return ticks;
}

std::string axes(const Span& span, const std::vector<double>& values) {
  const double bottom = kHeight - kBottom;
  std::string svg;
  for (const double value : values) {
    svg += line("grid", span.left, span.y(value), kWidth - kRight, span.y(value));
    svg += label(span.left - 6, span.y(value) + 4, "end", figure_text(value));
  }
  for (const double step : step_ticks(span)) {
    svg += line("axis", span.x(step), bottom, span.x(step), bottom + 4);
    svg += label(span.x(step), bottom + 16, "middle", figure_text(step));
  }
  svg += line("axis", span.left, bottom, kWidth - kRight, bottom);
  return svg + label((span.left + kWidth - kRight) / 2, kHeight - 4, "middle", "step");
}

/// Above the curves, where it meets none.
std::string kill_mark(const Span& span, double kill) {
  const double x = span.x(kill);
  const bool right_half = x > (span.left + kWidth) / 2;
  return line("kill", x, kTop - 8, x, kHeight - kBottom) +
         label(right_half ? x + 4 : x - 4, kTop - 12, right_half ? "end" : "start",
               "killed after step " + figure_text(kill), "killed");
}

Span span_of(const std::vector<Curve>& curves, const std::string& metric) {
  Span span;
  for (const Curve& curve : curves) {
    if (curve.metric != metric) continue;
    for (const auto& [step, value] : curve.points)
      if (std::isfinite(value)) span.add(static_cast<double>(step), value);
  }
  if (span.empty) return span;
  for (const Curve& curve : curves)
    if (curve.metric == metric)
      for (const auto& point : curve.points) span.add_step(static_cast<double>(point.first));
  return span;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low) || count < 2) return {low};
  const double rough = high / count - low / count;
  if (!std::isfinite(rough) || !(rough > 0)) return {low, high};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (step < rough) step = power * factor;
  std::vector<double> ticks;
  for (int i = 0; i <= count + 1; ++i) {
    const double tick = (std::ceil(low / step - 1e-9) + i) * step;
    if (!std::isfinite(tick) || tick > high + step * 1e-9) break;
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  if (ticks.size() < 2) return {low, high};
  return ticks;
}

std::string curves_svg(const std::vector<Curve>& curves, const std::string& metric,
                       CurveMarks marks) {
  Span span = span_of(curves, metric);
  if (span.empty) return {};
  const std::vector<double> values = round_ticks(span.low, span.high, kValueTicks);
  std::size_t letters = 0;
  for (const double value : values) letters = std::max(letters, figure_text(value).size());
  span.left = kLetter * static_cast<double>(letters) + 12;
  std::string svg = "<svg viewBox=\"0 0 " + figure_text(kWidth) + ' ' + figure_text(kHeight) +
                    "\" role=\"img\" aria-label=\"" +
                    html_escaped(metric + " of the reference and the restored run by step") + "\">";
  svg += axes(span, values);
  const auto kill = static_cast<double>(marks.kill_step);
  if (marks.kill_step > 0 && kill >= span.first_step && kill <= span.last_step)
    svg += kill_mark(span, kill);
  for (const Curve& curve : curves)
    if (curve.metric == metric) svg += curve_path(curve, span, marks.parted_step);
  return svg + "</svg>";
}

}  // namespace ckptverify
