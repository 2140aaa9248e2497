// How much two uninterrupted runs of one command differ up to the save at N. What differs there
// cannot be held against a restore.
#include <algorithm>
#include <cmath>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

// What two runs differ by after one step shows in the loss of the next.
constexpr std::size_t kStepsThatShowNoise = 2;

bool is_trained(Component component) {
  return component != Component::kConfig && component != Component::kOther;
}

void note_first(Noise& noise, std::string text) {
  if (noise.first.empty()) noise.first = std::move(text);
}

void note_metric(Noise& noise, const std::string& metric, std::uint64_t step, double reference,
                 double interrupted) {
  if (within({}, interrupted, reference)) return;
  const double difference = std::abs(reference - interrupted);
  double& largest = noise.metrics[metric];
  largest = std::isfinite(difference) ? std::max(largest, difference) : largest;
  note_first(noise, metric + " at " + step_text(step) + ": " + number_text(reference) + " and " +
                        number_text(interrupted));
}

/// Whether anything could be compared.
bool measure_step(Noise& noise, const StepEvent& reference, const StepEvent& interrupted) {
  const auto compare = [&](const char* metric, const std::optional<double>& a,
                           const std::optional<double>& b) {
    if (!a || !b) return false;
    note_metric(noise, metric, reference.step, *a, *b);
    return true;
  };
  bool compared = compare("loss", reference.loss, interrupted.loss);
  compared |= compare("grad_norm", reference.grad_norm, interrupted.grad_norm);
  compared |= compare("scale", reference.scale, interrupted.scale);
  if (reference.batch && interrupted.batch && *reference.batch != *interrupted.batch) {
    noise.batches_repeat = false;
    note_first(noise, "the batch of " + step_text(reference.step));
  }
  if (reference.rng != interrupted.rng) {
    noise.rng_repeats = false;
    note_first(noise, "random numbers after " + step_text(reference.step));
  }
  return compared;
}

bool measure_digests(Noise& noise, const StateDigests& reference, const StateDigests& interrupted) {
  for (const auto& [label, items] : reference) {
    const Component component = component_of_label(label);
    const Items* others = find_component(interrupted, label);
    if (!is_trained(component) || others == nullptr) continue;
    const Match matched = match(items, *others);
    if (matched.differences.empty()) continue;
    noise.entries.emplace(component, 0);
    note_first(noise,
               "the checkpoints at N in " + label + " entry " + matched.differences.front().path);
  }
  return true;
}

/// Whether the checkpoints at N could be compared.
bool measure_checkpoints(Noise& noise, const Observations& seen) {
  if (seen.noise) {
    for (const Difference& difference : seen.noise->differences) {
      if (!is_trained(difference.component)) continue;
      double& largest = noise.entries[difference.component];
      largest = std::max(largest, difference.max_absolute.value_or(0));
      note_first(noise, "the checkpoints at N in entry " + difference.path);
    }
    return true;
  }
  if (!seen.reference_saved || !seen.interrupted_saved) return false;
  return measure_digests(noise, seen.reference_saved->digests, seen.interrupted_saved->digests);
}

/// Evaluations at N of the two runs that never died. They say nothing of the training.
void measure_evaluations(Noise& noise, const Observations& seen) {
  const auto reference = evaluations_at(&seen.reference, seen.save_step);
  const auto interrupted = evaluations_at(&seen.interrupted, seen.save_step);
  for (std::size_t i = 0; i < std::min(reference.size(), interrupted.size()); ++i) {
    for (const auto& [metric, value] : reference[i]->metrics) {
      const auto other = interrupted[i]->metrics.find(metric);
      if (other == interrupted[i]->metrics.end()) continue;
      const double difference = std::abs(value - other->second);
      double& largest = noise.evaluations[metric];
      largest = std::isfinite(difference) ? std::max(largest, difference) : largest;
    }
    if (reference[i]->outputs != interrupted[i]->outputs) noise.outputs_repeat = false;
  }
}

}  // namespace

Noise measure_noise(const Case& subject) {
  Noise noise;
  bool compared = measure_checkpoints(noise, subject.seen);
  measure_evaluations(noise, subject.seen);
  std::size_t steps_compared = 0;
  for (const auto& [step, event] : subject.reference.steps) {
    const StepEvent* other = subject.interrupted.step(step);
    if (step <= subject.save_step() && other != nullptr && measure_step(noise, *event, *other))
      ++steps_compared;
  }
  compared = compared || steps_compared > 0;
  const bool trained_alike = noise.metrics.empty() && noise.batches_repeat && noise.rng_repeats;
  if (!noise.entries.empty() && trained_alike && steps_compared >= kStepsThatShowNoise &&
      steps_compared >= subject.save_step()) {
    noise.level = NoiseLevel::kOnlyInCheckpoints;
    noise.entries.clear();
  } else if (!noise.entries.empty() || !trained_alike)
    noise.level = NoiseLevel::kSome;
  else if (compared)
    noise.level = NoiseLevel::kNone;
  return noise;
}

void judge_noise(const Case& subject, Judgement& judgement) {
  Finding finding{.check = "noise", .subject = "reference and interrupted run", .message = {}};
  const std::string span = "up to " + step_text(subject.save_step());
  switch (subject.noise.level) {
    case NoiseLevel::kNone:
      finding.message = "two runs of the same command are equal " + span;
      judgement.proven.push_back(finding.message);
      break;
    case NoiseLevel::kOnlyInCheckpoints:
      finding.status = Status::kInconclusive;
      finding.message = "two runs of the same command trained alike " + span +
                        ", bit for bit by all that they tell, and what they saved differs, first "
                        "in " +
                        subject.noise.first +
                        ": one of the two saves is wrong, or the losses are told rounded";
      break;
    case NoiseLevel::kUnmeasured:
      finding.status = Status::kNotObserved;
      finding.message = "nothing shows whether two runs of the same command are equal " + span;
      break;
    case NoiseLevel::kSome:
      finding.status = Status::kWarn;
      finding.message = "two runs of the same command differ " + span + ", first in " +
                        subject.noise.first + ": what is not equal is decided within that noise";
      for (const auto& [metric, difference] : subject.noise.metrics)
        finding.evidence.push_back({"largest difference of " + metric, number_text(difference)});
      for (const auto& [component, difference] : subject.noise.entries)
        finding.evidence.push_back(
            {"largest difference in " + std::string(component_name(component)),
             number_text(difference)});
      break;
  }
  judgement.findings.push_back(std::move(finding));
}

}  // namespace ckptverify::judging
