// The resumed run's steps N + 1 to N + M against the reference's, step by step and metric by
// metric. What parts because of an earlier fault carries no cause of its own.
#include <algorithm>
#include <cmath>
#include <functional>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

enum class StepMatch { kUnseen, kEqual, kWithinNoise, kParted };

/// One series of two runs: how many steps could be compared, and where they part first.
struct Series {
  std::uint64_t compared = 0;
  std::uint64_t parted = 0;
  std::uint64_t noisy = 0;
  std::optional<std::uint64_t> first_parted = {};
};

using Matcher = std::function<StepMatch(const StepEvent& found, const StepEvent& expected)>;

Series compare_steps(const Case& subject, const Matcher& matcher) {
  Series series;
  for (std::uint64_t step = subject.save_step() + 1; step <= subject.final_step(); ++step) {
    const StepEvent* found = subject.resumed.step(step);
    const StepEvent* expected = subject.reference.step(step);
    if (found == nullptr || expected == nullptr) continue;
    const StepMatch matched = matcher(*found, *expected);
    if (matched == StepMatch::kUnseen) continue;
    ++series.compared;
    if (matched == StepMatch::kWithinNoise) ++series.noisy;
    if (matched != StepMatch::kParted) continue;
    ++series.parted;
    if (!series.first_parted) series.first_parted = step;
  }
  return series;
}

StepMatch match_number(const Case& subject, const std::string& metric,
                       const std::optional<double>& found, const std::optional<double>& expected) {
  if (!found || !expected) return StepMatch::kUnseen;
  if (within(tolerance_of(subject.plan, metric), *found, *expected)) return StepMatch::kEqual;
  const auto noise = subject.noise.metrics.find(metric);
  const bool noisy = noise != subject.noise.metrics.end() &&
                     std::abs(*found - *expected) <= kNoiseFactor * noise->second;
  return noisy ? StepMatch::kWithinNoise : StepMatch::kParted;
}

StepMatch match_rates(const Case& subject, const StepEvent& found, const StepEvent& expected) {
  if (found.lr.empty() || expected.lr.empty()) return StepMatch::kUnseen;
  const Tolerance tolerance = tolerance_of(subject.plan, "lr");
  if (found.lr.size() != expected.lr.size()) return StepMatch::kParted;
  for (std::size_t group = 0; group < found.lr.size(); ++group)
    if (!within(tolerance, found.lr[group], expected.lr[group])) return StepMatch::kParted;
  return StepMatch::kEqual;
}

StepMatch match_batch(const StepEvent& found, const StepEvent& expected) {
  if (!found.batch || !expected.batch) return StepMatch::kUnseen;
  return *found.batch == *expected.batch ? StepMatch::kEqual : StepMatch::kParted;
}

StepMatch match_rng(const StepEvent& found, const StepEvent& expected) {
  if (found.rng.empty() || expected.rng.empty()) return StepMatch::kUnseen;
  return found.rng == expected.rng ? StepMatch::kEqual : StepMatch::kParted;
}

std::string optional_text(const std::optional<double>& value) {
  return value ? number_text(*value) : "nothing";
}

/// "found 2.5, expected 2.25" of one metric at one step.
std::string values_text(const std::string& metric, const StepEvent& found,
                        const StepEvent& expected) {
  const auto pair = [](const std::string& a, const std::string& b) {
    return "found " + a + ", expected " + b;
  };
  const auto rates = [](const StepEvent& event) {
    std::string text;
    for (const double rate : event.lr) text += (text.empty() ? "" : " ") + number_text(rate);
    return text;
  };
  if (metric == "loss") return pair(optional_text(found.loss), optional_text(expected.loss));
  if (metric == "scale") return pair(optional_text(found.scale), optional_text(expected.scale));
  if (metric == "grad_norm")
    return pair(optional_text(found.grad_norm), optional_text(expected.grad_norm));
  if (metric == "lr") return pair(rates(found), rates(expected));
  if (metric == "batch") return pair(short_digest(*found.batch), short_digest(*expected.batch));
  for (const auto& [source, digest] : expected.rng) {
    const auto other = found.rng.find(source);
    if (other == found.rng.end()) return "source " + source + " is not reported";
    if (other->second != digest)
      return "source " + source + ", " + pair(short_digest(other->second), short_digest(digest));
  }
  return "the sources differ";
}

/// Whether two uninterrupted runs already differ in a way that this metric follows.
bool undecidable(const Case& subject, const std::string& metric) {
  if (subject.noise.level == NoiseLevel::kUnmeasured)
    return metric == "loss" || metric == "grad_norm";
  if (metric == "batch") return !subject.noise.batches_repeat;
  if (metric == "rng") return !subject.noise.rng_repeats;
  if (metric == "lr") return false;
  return subject.noise.level == NoiseLevel::kSome;
}

bool never_a_number(const Case& subject) {
  for (std::uint64_t step = subject.save_step() + 1; step <= subject.final_step(); ++step) {
    const StepEvent* event = subject.reference.step(step);
    if (event == nullptr || !event->loss || !std::isnan(*event->loss)) return false;
  }
  return true;
}

Finding series_finding(const Case& subject, const std::string& metric, const Series& series) {
  Finding finding{.check = "trajectory." + metric, .subject = "resumed run", .message = {}};
  const std::uint64_t steps = subject.final_step() - subject.save_step();
  const std::string span = "steps " + std::to_string(subject.save_step() + 1) + " to " +
                           std::to_string(subject.final_step());
  if (series.compared == 0) {
    finding.status = Status::kNotObserved;
    finding.message = metric + " was not seen in both runs at " + span;
  } else if (series.first_parted) {
    const std::uint64_t step = *series.first_parted;
    finding.status = undecidable(subject, metric) ? Status::kInconclusive : Status::kFail;
    finding.message =
        metric + " parts from the reference's at " + step_text(step) + ": " +
        values_text(metric, *subject.resumed.step(step), *subject.reference.step(step));
    finding.evidence.push_back({"steps that differ", std::to_string(series.parted) + " of " +
                                                         std::to_string(series.compared)});
    if (finding.status == Status::kInconclusive)
      finding.evidence.push_back(
          {"undecided", "two uninterrupted runs differ as well, or were not compared"});
  } else if (series.compared < steps) {
    finding.status = Status::kNotObserved;
    finding.message = metric + " is equal where it was seen: at " +
                      std::to_string(series.compared) + " of " + count_text(steps, "step");
  } else if (metric == "loss" && never_a_number(subject)) {
    finding.status = Status::kNotObserved;
    finding.message = "loss is nan in both runs at " + span + ", which shows nothing";
  } else {
    finding.message = metric + " is the reference's at " + span;
    if (series.noisy > 0)
      finding.message +=
          ", within the noise of two uninterrupted runs at " + count_text(series.noisy, "step");
  }
  return finding;
}

void explain_rates(const Case& subject, Finding& finding) {
  const ScheduleDiagnosis schedule = diagnose_schedule(subject);
  const std::string next = std::to_string(subject.save_step() + 1);
  switch (schedule.fault) {
    case ScheduleFault::kRestarted:
      finding.cause = cause(CauseKind::kSchedLost);
      finding.message +=
          "; the schedule starts over: the rate at step " + next + " is the reference's at step 1";
      break;
    case ScheduleFault::kShifted:
      finding.cause = cause(CauseKind::kSchedShift);
      finding.message += "; the schedule is shifted by " + std::to_string(schedule.shift) +
                         (schedule.shift == 1 || schedule.shift == -1 ? " step" : " steps");
      break;
    case ScheduleFault::kOther:
      finding.evidence.push_back({"one of", "sched-lost, sched-shift"});
      break;
    case ScheduleFault::kNone:
      break;
  }
}

void explain_batches(const Case& subject, Finding& finding, std::uint64_t step) {
  const auto origin = batch_origin(subject, *subject.resumed.step(step)->batch);
  finding.cause = cause(origin ? CauseKind::kDataCursor : CauseKind::kDataOrder);
  if (origin)
    finding.evidence.push_back(
        {"equals instead", "the reference's batch of " + step_text(*origin)});
}

/// Where the first parting is the loss itself, its step says which state is left to suspect.
void explain_loss(const Case& subject, Finding& finding, std::uint64_t step) {
  if (step == subject.next_step()) {
    finding.cause = unknown(Component::kModel);
    finding.evidence.push_back({"one of", "key-miss, buffer, rng-lost, data-cursor"});
  } else {
    finding.cause = unknown(Component::kOptimizer);
    finding.evidence.push_back({"one of", "opt-lost, opt-map, opt-meta, scaler, sched-lost"});
  }
}

struct Metric {
  std::string name;
  Matcher matcher;
};

std::vector<Metric> metrics_of(const Case& subject) {
  const auto number = [&subject](const char* name, std::optional<double> StepEvent::*field) {
    return Metric{name, [&subject, name, field](const StepEvent& found, const StepEvent& expected) {
                    return match_number(subject, name, found.*field, expected.*field);
                  }};
  };
  return {{"lr",
           [&subject](const StepEvent& found, const StepEvent& expected) {
             return match_rates(subject, found, expected);
           }},
          number("scale", &StepEvent::scale),
          number("loss", &StepEvent::loss),
          number("grad_norm", &StepEvent::grad_norm),
          {"batch", match_batch},
          {"rng", match_rng}};
}

Curve curve_of(const RunView& run, const std::string& metric, std::uint64_t last_step) {
  Curve curve{.metric = metric, .run = {}, .points = {}};
  for (const auto& [step, event] : run.steps) {
    std::optional<double> value;
    if (metric == "loss") value = event->loss;
    if (metric == "scale") value = event->scale;
    if (metric == "grad_norm") value = event->grad_norm;
    if (metric == "lr" && !event->lr.empty()) value = event->lr.front();
    if (value && step <= last_step) curve.points.emplace_back(step, *value);
  }
  return curve;
}

}  // namespace

void judge_trajectory(const Case& subject, Judgement& judgement) {
  if (subject.resumed.record == nullptr) return;
  std::vector<Finding> findings;
  std::optional<std::uint64_t> first_parted;
  std::vector<Series> all;
  const std::vector<Metric> metrics = metrics_of(subject);
  for (const Metric& metric : metrics) {
    all.push_back(compare_steps(subject, metric.matcher));
    const auto parted = all.back().first_parted;
    if (parted && (!first_parted || *parted < *first_parted)) first_parted = parted;
    findings.push_back(series_finding(subject, metric.name, all.back()));
  }
  const bool explained = cause_named(judgement);
  const auto parted_at = [&](std::size_t metric) { return all[metric].first_parted; };
  enum { kRates, kScale, kLoss, kGradNorm, kBatch, kRng };
  if (findings[kRates].status == Status::kFail) explain_rates(subject, findings[kRates]);
  if (!explained && first_parted) {
    const std::uint64_t step = *first_parted;
    if (parted_at(kRng) == step && parted_at(kLoss) != step && parted_at(kBatch) != step)
      findings[kRng].cause = cause(CauseKind::kRngDrift);
    if (parted_at(kBatch) == step) explain_batches(subject, findings[kBatch], step);
    if (parted_at(kScale) == step && parted_at(kLoss) != step)
      findings[kScale].cause = cause(CauseKind::kScaler);
    const bool loss_alone = parted_at(kRates) != step && parted_at(kScale) != step &&
                            parted_at(kBatch) != step && parted_at(kRng) != step;
    if (parted_at(kLoss) == step && loss_alone) explain_loss(subject, findings[kLoss], step);
  }
  for (Finding& finding : findings) {
    if (finding.status != Status::kFail) finding.cause.reset();
    judgement.findings.push_back(std::move(finding));
  }
}

std::vector<Curve> draw_curves(const Case& subject) {
  std::vector<Curve> curves;
  for (const char* metric : {"loss", "lr", "scale", "grad_norm"}) {
    for (const auto& [run, name] :
         {std::pair{&subject.reference, "reference"}, std::pair{&subject.resumed, "restored"}}) {
      Curve curve = curve_of(*run, metric, subject.final_step());
      curve.run = name;
      if (!curve.points.empty()) curves.push_back(std::move(curve));
    }
  }
  return curves;
}

}  // namespace ckptverify::judging
