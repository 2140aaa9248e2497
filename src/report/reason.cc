#include "src/report/reason.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "src/report/words.h"

namespace ckptverify {
namespace {

const Finding* first_of(const std::vector<Finding>& checks, Status status, std::string_view id) {
  const auto found = std::find_if(checks.begin(), checks.end(), [&](const Finding& finding) {
    return finding.status == status && finding.check == id;
  });
  return found == checks.end() ? nullptr : &*found;
}

const Finding* first_inconclusive(const std::vector<Finding>& checks) {
  if (const Finding* gate = first_of(checks, Status::kInconclusive, "process.gate")) return gate;
  const Finding* evidence = nullptr;
  for (const Finding& finding : checks) {
    if (finding.status != Status::kInconclusive) continue;
    if (finding.check != "verdict.evidence") return &finding;
    evidence = &finding;
  }
  return evidence;
}

bool is_noisy(const Report& report) {
  return std::any_of(report.checks.begin(), report.checks.end(), [](const Finding& finding) {
    return finding.check == "noise" && finding.status != Status::kPass &&
           finding.status != Status::kNotObserved;
  });
}

constexpr std::string_view kEvents =
    " A pass also needs events, a few lines in the trainer: docs/trainer-contract.md.";

/// With an error, or by a signal that was not ours.
bool ended_by_itself(const Finding& finding) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(), [](const Evidence& one) {
    const bool failed = one.value.starts_with("exit ") && one.value != "exit 0";
    return one.name == "exit" && (failed || one.value.starts_with("not started"));
  });
}

/// What helps where one check could not tell.
std::string inconclusive_step(const Report& report, const Finding& finding) {
  const std::string_view check = finding.check;
  if (check == "process.gate")
    return "Nothing of a run that was broken off counts. Remove what stopped it and run the gate "
           "again.";
  if (check == "process.reference" && ended_by_itself(finding))
    return "Look at the end of the reference's output: it ended by itself before that save.";
  if (check == "process.reference")
    return finding.message.find("the plan's") != std::string::npos
               ? "Correct checkpoints.path or [steps] of the plan, or where and when the trainer "
                 "saves."
               : "Look at the end of the reference's output: uninterrupted, it must train to "
                 "step " +
                     std::to_string(report.final_step) + " and save at steps " +
                     std::to_string(report.save_step) + " and " +
                     std::to_string(report.final_step) + ".";
  if (check == "process.kill")
    return "The trainer must still be training when it is killed: raise the number of steps in the "
           "plan's commands, or let it hold at the save by telling save_end.";
  if (check.starts_with("process."))
    return "Look at the end of that process's output; correct the plan or the trainer.";
  if (check == "static.readable")
    return "Name the checkpoint's own file or directory, as its trainer would restore it; "
           "`ckptverify formats` lists what can be read.";
  if (check.starts_with("static."))
    return "Save what could not be interpreted as plain tensors and values, or in a format that "
           "`ckptverify formats` lists.";
  if (check.starts_with("identity."))
    return "Tell the state as it is saved, or say in the plan what the entries are for: "
           "`checkpoints.components`.";
  if (is_noisy(report))
    return "Two uninterrupted runs already differ by themselves. Make the trainer repeat itself "
           "(seeds, deterministic kernels, one thread), or grant a tolerance in the plan.";
  if (wrote_no_events(report) && check == "verdict.evidence") return "Nothing failed.";
  return "Supply what the check says is missing, and run the gate again.";
}

std::string pass_step(const Report& report) {
  if (report.command != "run")
    return "Nothing for these bytes. Whether a trainer comes back from them is what `ckptverify "
           "run` shows.";
  std::string text =
      "Nothing. Run the gate again after each change of the trainer, its framework or its "
      "storage";
  if (!report.not_proven.empty()) text += ", and read what was not proven before relying on it";
  return text + '.';
}

const Curve* curve_of(const Report& report, std::string_view metric, std::string_view run) {
  const auto found =
      std::find_if(report.curves.begin(), report.curves.end(),
                   [&](const Curve& curve) { return curve.metric == metric && curve.run == run; });
  return found == report.curves.end() ? nullptr : &*found;
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::optional<Parting> parting_of(const Report& report, const std::string& metric) {
  const Curve* reference = curve_of(report, metric, "reference");
  const Curve* restored = curve_of(report, metric, "restored");
  if (reference == nullptr || restored == nullptr) return std::nullopt;
  for (const auto& [step, found] : restored->points) {
    const auto expected =
        std::find_if(reference->points.begin(), reference->points.end(),
                     [at = step](const auto& point) { return point.first == at; });
    if (expected == reference->points.end() || same(found, expected->second)) continue;
    auto [found_text, expected_text] = distinct_figures(found, expected->second);
    return Parting{metric, step, std::move(found_text), std::move(expected_text)};
  }
  return std::nullopt;
}

}  // namespace

const Finding* deciding_check(const Report& report) {
  switch (report.verdict) {
    case Verdict::kPass:
      return nullptr;
    case Verdict::kInconclusive:
      return first_inconclusive(report.checks);
    case Verdict::kFail:
      break;
  }
  if (!report.causes.empty() && !report.causes.front().checks.empty()) {
    const std::string& id = report.causes.front().checks.front();
    if (const Finding* named = first_of(report.checks, Status::kFail, id)) return named;
  }
  const auto failed =
      std::find_if(report.checks.begin(), report.checks.end(),
                   [](const Finding& finding) { return finding.status == Status::kFail; });
  return failed == report.checks.end() ? nullptr : &*failed;
}

std::string next_step(const Report& report) {
  if (report.verdict == Verdict::kPass) return pass_step(report);
  if (report.verdict == Verdict::kFail && !report.causes.empty())
    return cause_remedy(report, report.causes.front().cause);
  const Finding* deciding = deciding_check(report);
  if (deciding == nullptr) return "Run the gate again.";
  std::string text = inconclusive_step(report, *deciding);
  if (wrote_no_events(report) && deciding->check != "process.gate") text += kEvents;
  return text;
}

std::vector<Parting> partings(const Report& report) {
  constexpr std::string_view kPrefix = "trajectory.";
  std::vector<Parting> found;
  for (const Finding& finding : report.checks) {
    if (finding.status != Status::kFail || !finding.check.starts_with(kPrefix)) continue;
    if (auto parting = parting_of(report, finding.check.substr(kPrefix.size())))
      found.push_back(*std::move(parting));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Parting& a, const Parting& b) { return a.step < b.step; });
  return found;
}

std::string parting_text(const Parting& parting) {
  return parting.metric + " at step " + std::to_string(parting.step) + ": found " + parting.found +
         ", expected " + parting.expected;
}

std::pair<std::string, std::string> distinct_figures(double found, double expected) {
  constexpr int kDigits[] = {6, 9, 12};
  constexpr int kDigitsOfADouble = 17;
  const auto text = [](double value, int digits) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
    return std::string(buffer);
  };
  for (const int digits : kDigits) {
    std::pair<std::string, std::string> pair{text(found, digits), text(expected, digits)};
    if (pair.first != pair.second) return pair;
  }
  return {text(found, kDigitsOfADouble), text(expected, kDigitsOfADouble)};
}

std::optional<FoundExpected> found_expected(std::string_view message) {
  constexpr std::string_view kFound = "found ";
  constexpr std::string_view kExpected = ", expected ";
  const std::size_t expected = message.find(kExpected);
  if (expected == std::string_view::npos) return std::nullopt;
  const std::size_t found = message.rfind(kFound, expected);
  if (found == std::string_view::npos || found < 2) return std::nullopt;
  const std::string_view joint = message.substr(found - 2, 2);
  if (joint != ": " && joint != ", ") return std::nullopt;
  const std::size_t value = found + kFound.size();
  const std::size_t last = expected + kExpected.size();
  const std::size_t semicolon = message.find("; ", last);
  FoundExpected parts{
      .before = std::string(message.substr(0, found - 2)),
      .found = std::string(message.substr(value, expected - value)),
      .expected = std::string(
          message.substr(last, semicolon == std::string_view::npos ? semicolon : semicolon - last)),
      .after = {}};
  if (semicolon != std::string_view::npos) parts.after = message.substr(semicolon + 2);
  return parts;
}

}  // namespace ckptverify
