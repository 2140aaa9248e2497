// What a model computes: the writer's evaluation before the kill against a fresh process on the
// moved copy, and the evaluations of both runs' checkpoints at N + M.
#include <algorithm>
#include <cmath>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

struct Outcome {
  std::size_t compared = 0;
  std::size_t noisy = 0;  // differs as two uninterrupted runs do
  std::vector<Evidence> differences;
  bool outputs_differ = false;
  bool outputs_equal = false;
};

bool within_noise(const Noise* noise, const std::string& metric, double difference) {
  if (noise == nullptr) return false;
  const auto largest = noise->evaluations.find(metric);
  return largest != noise->evaluations.end() &&
         std::abs(difference) <= kNoiseFactor * largest->second;
}

/// `noise`: of two runs that were both trained; none where one state is evaluated twice.
Outcome compare(const Plan& plan, const Noise* noise, const EvalEvent& found,
                const EvalEvent& expected) {
  Outcome outcome;
  bool tolerant = false;
  for (const auto& [metric, value] : expected.metrics) {
    const auto other = found.metrics.find(metric);
    if (other == found.metrics.end()) continue;
    const Tolerance tolerance = tolerance_of(plan, "eval." + metric);
    tolerant = tolerant || tolerance.absolute > 0 || tolerance.relative > 0;
    ++outcome.compared;
    if (within(tolerance, other->second, value)) continue;
    if (within_noise(noise, metric, other->second - value))
      ++outcome.noisy;
    else
      outcome.differences.push_back(
          {metric, "found " + number_text(other->second) + ", expected " + number_text(value)});
  }
  if (found.outputs && expected.outputs) {
    outcome.outputs_equal = *found.outputs == *expected.outputs;
    // A digest cannot be within a tolerance: where the plan grants one, the metrics decide.
    const bool repeats = noise == nullptr || noise->outputs_repeat;
    outcome.outputs_differ = !outcome.outputs_equal && !tolerant && repeats;
    ++outcome.compared;
  }
  return outcome;
}

/// Several evaluations of one step, each against its like: by order where both sides have as many,
/// else each of the shorter side against whichever it equals.
Outcome compare_all(const Plan& plan, const Noise* noise,
                    const std::vector<const EvalEvent*>& found,
                    const std::vector<const EvalEvent*>& expected) {
  Outcome all;
  const auto add = [&all](const Outcome& one) {
    all.compared += one.compared;
    all.noisy += one.noisy;
    all.differences.insert(all.differences.end(), one.differences.begin(), one.differences.end());
    all.outputs_differ = all.outputs_differ || one.outputs_differ;
    all.outputs_equal = (all.compared == one.compared || all.outputs_equal) && one.outputs_equal;
  };
  if (found.size() == expected.size()) {
    for (std::size_t i = 0; i < found.size(); ++i)
      add(compare(plan, noise, *found[i], *expected[i]));
    return all;
  }
  const bool found_is_shorter = found.size() < expected.size();
  for (const EvalEvent* one : found_is_shorter ? found : expected) {
    std::optional<Outcome> best;
    for (const EvalEvent* other : found_is_shorter ? expected : found) {
      Outcome outcome = found_is_shorter ? compare(plan, noise, *one, *other)
                                         : compare(plan, noise, *other, *one);
      const bool equal =
          outcome.compared > 0 && outcome.differences.empty() && !outcome.outputs_differ;
      if (!best || equal) best = std::move(outcome);
      if (equal) break;
    }
    if (best) add(*best);
  }
  return all;
}

Finding outcome_finding(const Case& subject, Finding finding, const Outcome& outcome) {
  if (outcome.compared == 0) {
    finding.status = Status::kNotObserved;
    finding.message = "the two evaluations have no metric in common";
  } else if (outcome.differences.empty() && !outcome.outputs_differ) {
    finding.message += " is equal: " + count_text(outcome.compared, "figure") +
                       (outcome.outputs_equal ? ", every output bit for bit" : "");
    if (outcome.noisy > 0)
      finding.message +=
          ", within the noise of two uninterrupted runs in " + count_text(outcome.noisy, "figure");
  } else {
    finding.status =
        subject.noise.level == NoiseLevel::kSome ? Status::kInconclusive : Status::kFail;
    finding.message += outcome.differences.empty()
                           ? " has the same metrics and other outputs"
                           : " differs in " + outcome.differences.front().name + ": " +
                                 outcome.differences.front().value;
    finding.evidence = outcome.differences;
    if (outcome.outputs_differ) finding.evidence.push_back({"outputs", "the digests differ"});
  }
  return finding;
}

/// Figures of a process that then failed are open: what it would have said next is not known.
void doubt_failed(Finding& finding, const std::optional<RunRecord>& run) {
  if (!run || finding.status != Status::kPass) return;
  const Exit& exit = run->exit;
  const bool ended_well = exit.kind == ExitKind::kExited && exit.code == 0;
  if (ended_well && run->kill != KillOutcome::kSurvivors) return;
  finding.status = Status::kInconclusive;
  finding.message +=
      ended_well ? "; the process left others behind" : "; the process then failed: " + exit.text();
  if (!run->log_tail.empty())
    finding.evidence.push_back({"last lines of its output", run->log_tail});
}

/// A process that was to evaluate one checkpoint and says that it evaluated another step.
std::optional<std::string> other_step(const std::optional<RunRecord>& run, std::uint64_t step) {
  if (!run || !evaluations_at(&*run, step).empty()) return std::nullopt;
  for (const Event& event : run->trace.events)
    if (const auto* found = std::get_if<EvalEvent>(&event.what))
      return "the evaluation of the checkpoint of " + step_text(step) + " says that it is of " +
             step_text(found->step) + "; it must tell the checkpoint's step";
  return std::nullopt;
}

Finding saved_finding(const Case& subject) {
  const std::string step = step_text(subject.save_step());
  Finding finding{.check = "eval.saved", .subject = "model", .message = {}};
  const RunRecord* fresh = subject.seen.fresh_eval ? &*subject.seen.fresh_eval : nullptr;
  const auto expected = evaluations_at(&subject.seen.interrupted, subject.save_step());
  const auto found = evaluations_at(fresh, subject.save_step());
  if (const auto other = other_step(subject.seen.fresh_eval, subject.save_step())) {
    finding.status = Status::kInconclusive;
    finding.message = *other;
    return finding;
  }
  if (fresh != nullptr && found.empty()) {
    const bool command_works =
        subject.seen.reference_eval &&
        !evaluations_at(&*subject.seen.reference_eval, subject.final_step()).empty();
    finding.status = command_works ? Status::kFail : Status::kInconclusive;
    finding.message =
        "a fresh process did not evaluate the moved copy of " + step + ": " + fresh->exit.text();
    if (!fresh->log_tail.empty())
      finding.evidence.push_back({"last lines of its output", fresh->log_tail});
    return finding;
  }
  if (found.empty() || expected.empty()) {
    finding.status = Status::kNotObserved;
    finding.message = found.empty() ? "no fresh process evaluated the checkpoint of " + step
                                    : "the writer did not evaluate at " + step;
    return finding;
  }
  finding.message =
      "the evaluation of the moved copy by a fresh process, against the writer's at " + step + ",";
  finding = outcome_finding(subject, std::move(finding),
                            compare_all(subject.plan, nullptr, found, expected));
  if (finding.status == Status::kFail)
    finding.evidence.push_back({"one of", "key-miss, buffer, tied, ema"});
  doubt_failed(finding, subject.seen.fresh_eval);
  return finding;
}

Finding final_finding(const Case& subject) {
  const std::string step = step_text(subject.final_step());
  Finding finding{.check = "eval.final",
                  .status = Status::kNotObserved,
                  .subject = "model",
                  .message = "not both runs were evaluated at " + step};
  for (const auto* own : {&subject.seen.reference_eval, &subject.seen.resumed_eval})
    if (const auto other = other_step(*own, subject.final_step())) {
      finding.status = Status::kInconclusive;
      finding.message = *other;
      return finding;
    }
  const auto either = [&](const std::optional<RunRecord>& own, const RunRecord* run) {
    auto found = evaluations_at(own ? &*own : nullptr, subject.final_step());
    return found.empty() ? evaluations_at(run, subject.final_step()) : found;
  };
  const auto expected = either(subject.seen.reference_eval, &subject.seen.reference);
  const auto found = either(subject.seen.resumed_eval, subject.resumed.record);
  if (found.empty() || expected.empty()) return finding;
  finding.status = Status::kPass;
  finding.message = "the resumed run's evaluation at " + step + ", against the reference's,";
  finding = outcome_finding(subject, std::move(finding),
                            compare_all(subject.plan, &subject.noise, found, expected));
  if (finding.status == Status::kInconclusive && subject.noise.evaluations.empty()) {
    finding.status = Status::kNotObserved;
    finding.message += "; how far two uninterrupted runs differ in it was not seen";
  }
  doubt_failed(finding, subject.seen.reference_eval);
  doubt_failed(finding, subject.seen.resumed_eval);
  return finding;
}

}  // namespace

std::vector<const EvalEvent*> evaluations_at(const RunRecord* run, std::uint64_t step) {
  std::vector<const EvalEvent*> all;
  if (run == nullptr) return all;
  for (const Event& event : run->trace.events)
    if (const auto* found = std::get_if<EvalEvent>(&event.what); found && found->step == step)
      all.push_back(found);
  return all;
}

void judge_evaluation(const Case& subject, Judgement& judgement) {
  judgement.findings.push_back(saved_finding(subject));
  if (subject.resumed.record != nullptr) judgement.findings.push_back(final_finding(subject));
}

}  // namespace ckptverify::judging
