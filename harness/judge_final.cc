// The checkpoints at N + M, the reference's and the resumed run's, entry by entry.
#include <algorithm>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

/// What differs in one component, from either source of evidence.
struct FinalDifference {
  std::size_t count = 0;
  std::string path;  // of one that is more than numbers apart, where there is such; else the first
  std::string index = {};  // of its first element that differs, "[1, 0]"
  std::string expected;
  std::string found;
  bool structural = false;  // an entry missing, or of another dtype or shape: no noise does that
  bool tensors = false;     // as far as digests show
  double max_absolute = 0;
  std::set<std::string> paths = {};
};

using FinalDifferences = std::map<Component, FinalDifference>;

void note(FinalDifferences& all, Component component, FinalDifference one) {
  FinalDifference& difference = all[component];
  const double largest = std::max(difference.max_absolute, one.max_absolute);
  const std::size_t count = difference.count + 1;
  const bool tensors = difference.tensors || one.tensors;
  std::set<std::string> paths = std::move(difference.paths);
  paths.insert(one.path);
  if (difference.count == 0 || (one.structural && !difference.structural))
    difference = std::move(one);
  difference.count = count;
  difference.tensors = tensors;
  difference.max_absolute = largest;
  difference.paths = std::move(paths);
}

bool is_structural(DifferenceKind kind) {
  return kind != DifferenceKind::kValue && kind != DifferenceKind::kBytes;
}

FinalDifferences from_comparison(const Comparison& comparison) {
  FinalDifferences all;
  for (const Difference& difference : comparison.differences)
    note(all, difference.component,
         {.path = difference.path,
          .index = index_text(difference),
          .expected = difference.first.empty() ? "nothing" : difference.first,
          .found = difference.second.empty() ? "nothing" : difference.second,
          .structural = is_structural(difference.kind),
          .max_absolute = difference.max_absolute.value_or(0)});
  return all;
}

FinalDifferences from_digests(const StateDigests& reference, const StateDigests& resumed) {
  FinalDifferences all;
  static const Items kNone;
  const auto side = [](const StateDigests& state, const std::string& label) -> const Items& {
    const Items* items = find_component(state, label);
    return items == nullptr ? kNone : *items;
  };
  for (const auto& [label, items] : reference)
    for (const auto& [path, item] : items) {
      const Items& others = side(resumed, label);
      const auto other = others.find(path);
      const StateItem* found = other == others.end() ? nullptr : &other->second;
      if (found == nullptr || found->digest != item.digest)
        note(all, component_of_label(label),
             {.path = path,
              .expected = item_text(&item),
              .found = item_text(found),
              .structural = found == nullptr,
              .tensors = item.is_tensor || (found != nullptr && found->is_tensor)});
    }
  for (const auto& [label, items] : resumed)
    for (const auto& [path, item] : items)
      if (!side(reference, label).contains(path))
        note(all, component_of_label(label),
             {.path = path,
              .expected = "nothing",
              .found = item_text(&item),
              .structural = true,
              .tensors = item.is_tensor});
  return all;
}

/// An effect that only one component shows is that component's own.
std::optional<Cause> lone_cause(Component component) {
  switch (component) {
    case Component::kEma:
      return cause(CauseKind::kEma);
    case Component::kScaler:
      return cause(CauseKind::kScaler);
    case Component::kStep:
      return cause(CauseKind::kStepCount);
    case Component::kRng:
      return cause(CauseKind::kRngDrift);
    default:
      return unknown(component);
  }
}

bool noisy(const Case& subject, Component component) {
  return subject.noise.level != NoiseLevel::kNone && component != Component::kStep &&
         component != Component::kConfig && component != Component::kOther;
}

bool within_noise(const Case& subject, Component component, double difference) {
  const auto noise = subject.noise.entries.find(component);
  return noise != subject.noise.entries.end() && difference > 0 &&
         difference <= kNoiseFactor * noise->second;
}

/// Whether the trainer counts one of those entries, which no known component holds, to its state.
bool tells_any(const Case& subject, const std::set<std::string>& paths) {
  const auto saved = subject.interrupted.saves.find(subject.save_step());
  if (saved == subject.interrupted.saves.end()) return false;
  for (const auto& [label, items] : saved->second) {
    if (component_of_label(label) != Component::kOther) continue;
    for (const auto& [path, item] : items)
      if (paths.contains(path) || paths.contains(label + "." + path)) return true;
  }
  return false;
}

/// A tensor that no name explains, or
/// that the plan calls settings, may be a second network or its optimizer.
bool is_incidental(const Case& subject, Component component, const FinalDifference& difference,
                   bool tensors) {
  if (!is_incidental(subject, component) || tensors) return false;
  return component == Component::kConfig || !tells_any(subject, difference.paths);
}

Finding difference_finding(const Case& subject, Component component,
                           const FinalDifference& difference, bool tensors) {
  const std::string name(component_name(component));
  Finding finding{
      .check = "final." + name, .status = Status::kFail, .subject = name, .message = {}};
  finding.message = "the checkpoints at " + step_text(subject.final_step()) + " differ in " + name +
                    ": entry " + difference.path;
  if (!difference.index.empty()) finding.message += " at " + difference.index;
  if (difference.count > 1)
    finding.message += " and " + std::to_string(difference.count - 1) + " more";
  finding.message += ", found " + difference.found + ", expected " + difference.expected;
  finding.evidence.push_back({"entries that differ", std::to_string(difference.count)});
  if (difference.max_absolute > 0)
    finding.evidence.push_back({"largest difference", number_text(difference.max_absolute)});
  if (is_incidental(subject, component, difference, tensors)) {
    finding.status = Status::kWarn;
  } else if (difference.structural) {
    finding.evidence.push_back({"not noise", "an entry is missing, or of another dtype or shape"});
  } else if (within_noise(subject, component, difference.max_absolute)) {
    finding.status = Status::kPass;
    finding.message += ": within the noise of two uninterrupted runs";
    finding.evidence.push_back({"equal", std::string(kWithinNoise)});
  } else if (noisy(subject, component)) {
    finding.status = Status::kInconclusive;
    finding.evidence.push_back(
        {"undecided", "two uninterrupted runs differ as well, or were not compared"});
  } else if (component == Component::kRng && rng_unused(subject, difference.paths)) {
    finding.status = Status::kNotApplicable;
  }
  return finding;
}

/// What the comparison let pass is equal as far as the plan's tolerance goes, or by other names.
void allow_by_tolerance(Finding& finding, const FinalDifference& bytes) {
  finding.message += ", within the plan's tolerance or under other names";
  finding.evidence.push_back({"equal", "not bit for bit"});
  finding.evidence.push_back({"first that is not", bytes.path});
}

void explain_untied(const Case& subject, Finding& finding) {
  const Items* reference = find_component(subject.seen.reference_final->digests, "model");
  const Items* resumed = find_component(subject.seen.resumed_final->digests, "model");
  if (reference == nullptr || resumed == nullptr) return;
  const auto pair = untied(*reference, *resumed);
  if (!pair) return;
  finding.cause = cause(CauseKind::kTied);
  finding.message += "; " + pair->first + " and " + pair->second +
                     " are one tensor in the reference and two in the resumed run";
}

Finding missing_finding(const Case& subject) {
  const std::string step = step_text(subject.final_step());
  Finding finding{.check = "final.checkpoint",
                  .status = Status::kNotObserved,
                  .subject = "checkpoint at " + step,
                  .message = "there are not two checkpoints at " + step + " to compare"};
  const bool acknowledged =
      subject.seen.resumed && subject.seen.resumed->held_at == subject.final_step();
  if (subject.seen.reference_final && acknowledged && !subject.seen.resumed_final) {
    finding.status = Status::kInconclusive;
    finding.message = "the resumed run acknowledged its save at " + step +
                      ", and the checkpoint could not be read";
  }
  return finding;
}

/// What the checkpoint of N has and neither of those of N + M: two runs that lose it alike are
/// equal, and a run that dies after that save does not come back.
std::vector<Finding> lost_since(const Case& subject) {
  std::vector<Finding> findings;
  if (!subject.seen.reference_saved) return findings;
  std::set<Component> later;
  for (const auto* final : {&*subject.seen.reference_final, &*subject.seen.resumed_final})
    for (const auto& [label, items] : final->digests)
      if (!items.empty()) later.insert(component_of_label(label));
  std::map<Component, std::size_t> before;
  for (const auto& [label, items] : subject.seen.reference_saved->digests)
    before[component_of_label(label)] += items.size();
  for (const auto& [component, count] : before) {
    if (count == 0 || later.contains(component)) continue;
    const std::string name(component_name(component));
    Finding finding{.check = "final." + name,
                    .status = Status::kFail,
                    .subject = name,
                    .message = "neither checkpoint of " + step_text(subject.final_step()) +
                               " has any " + name + " state, and that of " +
                               step_text(subject.save_step()) + " has " +
                               count_text(count, "entry") +
                               ": a run that dies after the later save does not come back"};
    finding.cause = absent_cause(component).cause;
    if (is_incidental(subject, component)) {
      finding.status = Status::kWarn;
      finding.cause.reset();
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// Objects of classes that are not modelled are equal or not, and nobody sees which. Among settings
/// that is a remark, unless the class is one that draws random numbers.
void doubt_opaque(const Case& subject, Component component, Finding& finding) {
  if (finding.status != Status::kPass) return;
  constexpr std::string_view kGenerators[] = {"random.Random", "Generator", "RandomState"};
  std::vector<std::string> objects;
  for (const auto& [label, all] : subject.seen.resumed_final->opaque)
    if (component_of_label(label) == component)
      objects.insert(objects.end(), all.begin(), all.end());
  if (objects.empty()) return;
  const bool draws = std::any_of(objects.begin(), objects.end(), [&](const std::string& object) {
    return std::any_of(std::begin(kGenerators), std::end(kGenerators), [&](std::string_view name) {
      return object.ends_with(std::string(name) + ")");
    });
  });
  finding.status =
      is_incidental(subject, component) && !draws ? Status::kWarn : Status::kInconclusive;
  finding.message += "; " + count_text(objects.size(), "object") +
                     " of a class that is not modelled could not be compared, the first is " +
                     objects.front() + ": save its state as values or tensors";
}

/// Files beside the state that nobody can read are state or not; where they differ, that is open.
std::optional<Finding> unread_finding(const Case& subject) {
  const auto& expected = subject.seen.reference_final->unread;
  const auto& found = subject.seen.resumed_final->unread;
  if (expected == found) return std::nullopt;
  Finding finding{.check = "final.files",
                  .status = Status::kInconclusive,
                  .subject = "files that no reader looks into",
                  .message = {}};
  std::set<std::string> names;
  for (const auto* files : {&expected, &found})
    for (const auto& [name, digest] : *files) names.insert(name);
  std::erase_if(names, [&](const std::string& name) {
    const auto one = expected.find(name);
    const auto other = found.find(name);
    return one != expected.end() && other != found.end() && one->second == other->second;
  });
  finding.message = "in the checkpoints at " + step_text(subject.final_step()) + " " +
                    count_text(names.size(), "file differs", "files differ") +
                    " that no reader looks into, the first is " + *names.begin() +
                    "; if that is no state of the run, waive final.files in the plan";
  for (const std::string& name : names) finding.evidence.push_back({"differs", name});
  return finding;
}

/// A model that is the same at N, or has no element, is equal at N + M whatever became of the run.
void doubt_idle_model(const Case& subject, Finding& finding) {
  if (finding.status != Status::kPass || !subject.seen.reference_saved) return;
  const Items* before = find_component(subject.seen.reference_saved->digests, "model");
  const Items* after = find_component(subject.seen.reference_final->digests, "model");
  if (before == nullptr || after == nullptr) return;
  const bool moved = std::any_of(after->begin(), after->end(), [&](const auto& item) {
    const auto earlier = before->find(item.first);
    return earlier == before->end() || earlier->second.digest != item.second.digest;
  });
  if (moved) return;
  finding.status = Status::kNotObserved;
  finding.message += ", and so it was at " + step_text(subject.save_step()) +
                     " already: that they are equal shows nothing";
}

}  // namespace

void judge_final(const Case& subject, Judgement& judgement) {
  const Observations& seen = subject.seen;
  if (subject.resumed.record == nullptr) return;
  if (!seen.reference_final || !seen.resumed_final) {
    judgement.findings.push_back(missing_finding(subject));
    return;
  }
  const StateDigests& reference = seen.reference_final->digests;
  const StateDigests& resumed = seen.resumed_final->digests;
  const FinalDifferences by_digest = from_digests(reference, resumed);
  const FinalDifferences differences =
      seen.final_difference ? from_comparison(*seen.final_difference) : by_digest;
  std::map<Component, std::size_t> present;
  for (const auto& [label, items] : reference) present[component_of_label(label)] += items.size();
  for (const auto& [component, difference] : differences) present.try_emplace(component, 0);
  for (const auto& [label, objects] : seen.reference_final->opaque)
    present.try_emplace(component_of_label(label), 0);
  const bool explained = cause_named(judgement);
  for (const auto& [component, count] : present) {
    const std::string name(component_name(component));
    const auto difference = differences.find(component);
    const auto bytes = by_digest.find(component);
    const bool tensors = bytes != by_digest.end() && bytes->second.tensors;
    Finding finding{.check = "final." + name,
                    .subject = name,
                    .message = "the " + name + " state at " + step_text(subject.final_step()) +
                               " is the reference's: " + count_text(count, "entry")};
    if (difference != differences.end())
      finding = difference_finding(subject, component, difference->second, tensors);
    else if (bytes != by_digest.end())
      allow_by_tolerance(finding, bytes->second);
    if (finding.status == Status::kFail && component == Component::kModel)
      explain_untied(subject, finding);
    if (finding.status == Status::kFail && !finding.cause && !explained && differences.size() == 1)
      finding.cause = lone_cause(component);
    if (component == Component::kModel) doubt_idle_model(subject, finding);
    doubt_opaque(subject, component, finding);
    judgement.findings.push_back(std::move(finding));
  }
  if (auto finding = unread_finding(subject)) judgement.findings.push_back(*std::move(finding));
  for (Finding& finding : lost_since(subject)) judgement.findings.push_back(std::move(finding));
}

}  // namespace ckptverify::judging
