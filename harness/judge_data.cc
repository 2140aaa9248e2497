// Data and randomness at the first resumed step: the next batch, and each source of random numbers,
// against the reference's step N + 1; and what a wrong cursor or generator proves.
#include <algorithm>
#include <array>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

/// Whether an entry of a data cursor says in which order, rather than how far.
bool is_order(const EntryDifference& difference) {
  constexpr std::array<std::string_view, 6> kOrderWords = {"seed",    "epoch", "perm",
                                                           "shuffle", "order", "generator"};
  return std::any_of(kOrderWords.begin(), kOrderWords.end(), [&](std::string_view word) {
    return last_key(difference.path).find(word) != std::string_view::npos;
  });
}

const StepEvent* expected_first(const Case& subject) {
  return subject.reference.step(subject.next_step());
}

/// A source of random numbers that is where the reference's was after the step whose batch was
/// drawn: then the batches are drawn from it, and the wrong one follows from the wrong source.
std::string drawn_from(const StepEvent& found, const StepEvent& expected, const StepEvent& origin) {
  for (const auto& [source, digest] : found.rng) {
    const auto right = expected.rng.find(source);
    const auto there = origin.rng.find(source);
    if (right != expected.rng.end() && right->second != digest && there != origin.rng.end() &&
        there->second == digest)
      return source;
  }
  return {};
}

/// Whether random state is known to be wrong and the trainer has no position in the data at all.
bool follows_lost_rng(const Case& subject, const Judgement& judgement) {
  const bool has_cursor =
      (subject.disk != nullptr && find_component(*subject.disk, "data_cursor")) ||
      find_component(subject.live, "data_cursor") != nullptr;
  return !has_cursor && std::any_of(judgement.findings.begin(), judgement.findings.end(),
                                    [](const Finding& finding) {
                                      return finding.status == Status::kFail && finding.cause &&
                                             (finding.cause->kind == CauseKind::kRngLost ||
                                              finding.cause->kind == CauseKind::kRngDrift ||
                                              finding.cause->kind == CauseKind::kRngRank);
                                    });
}

bool cursor_is_wrong(const Judgement& judgement) {
  return std::any_of(judgement.findings.begin(), judgement.findings.end(),
                     [](const Finding& finding) {
                       return finding.status == Status::kFail &&
                              component_of_label(finding.subject) == Component::kDataCursor;
                     });
}

/// Of a first batch that the reference drew elsewhere: the cursor's fault, unless batches come from
/// random numbers that are there as well.
void explain_origin(const Case& subject, const Judgement& judgement, const StepEvent& origin,
                    Finding& finding) {
  const std::string source = drawn_from(*subject.resumed.first(), *expected_first(subject), origin);
  if (cursor_is_wrong(judgement) || (source.empty() && !follows_lost_rng(subject, judgement))) {
    finding.cause = cause(CauseKind::kDataCursor);
    return;
  }
  finding.evidence.push_back({"follows", "the batches are drawn from random numbers" +
                                             (source.empty() ? "" : ", source " + source) +
                                             ", which are wrong"});
}

Finding next_batch_finding(const Case& subject, const Judgement& judgement) {
  Finding finding{.check = "data.next_batch",
                  .status = Status::kNotObserved,
                  .subject = "data_cursor",
                  .message = "no batch digests of the first resumed step"};
  const StepEvent* found = subject.resumed.first();
  const StepEvent* expected = expected_first(subject);
  if (found == nullptr || expected == nullptr || !found->batch || !expected->batch) return finding;
  if (*found->batch == *expected->batch) {
    finding.status = Status::kPass;
    finding.message = "the first batch after the restore is the one that the reference drew next";
    return finding;
  }
  if (!subject.noise.batches_repeat) {
    finding.status = Status::kInconclusive;
    finding.message = "two uninterrupted runs draw different batches, so the next one is open";
    return finding;
  }
  finding.status = Status::kFail;
  finding.evidence.push_back({"found batch", found->batch->text()});
  finding.evidence.push_back({"expected batch", expected->batch->text()});
  if (const auto origin = batch_origin(subject, *found->batch)) {
    explain_origin(subject, judgement, *subject.reference.step(*origin), finding);
    finding.message = "the first batch after the restore is the reference's of " +
                      step_text(*origin) + ", expected that of " + step_text(expected->step);
    finding.evidence.push_back({"equals instead", "the batch of " + step_text(*origin)});
    return finding;
  }
  finding.message =
      "the first batch after the restore is none that the reference drew, expected "
      "that of " +
      step_text(expected->step);
  const bool rng_parted = found->rng != expected->rng && !found->rng.empty();
  if (rng_parted)
    finding.evidence.push_back({"also", "a source of random numbers differs after this step"});
  else if (!cause_named(judgement))
    finding.cause = cause(CauseKind::kDataOrder);
  return finding;
}

Finding source_finding(const Case& subject, const std::string& source, const Judgement& judgement) {
  Finding finding{.check = "rng." + source,
                  .status = Status::kNotObserved,
                  .subject = "rng",
                  .message = "the resumed run does not say its state after the first step"};
  const StepEvent* found = subject.resumed.first();
  const StepEvent* expected = expected_first(subject);
  if (found == nullptr || expected == nullptr || !found->rng.contains(source)) return finding;
  const Digest& digest = found->rng.at(source);
  if (digest == expected->rng.at(source)) {
    finding.status = Status::kPass;
    finding.message =
        "source " + source + " is where the reference's is after " + step_text(expected->step);
    return finding;
  }
  if (!subject.noise.rng_repeats) {
    finding.status = Status::kInconclusive;
    finding.message = "two uninterrupted runs differ in source " + source;
    return finding;
  }
  finding.status = Status::kFail;
  finding.message = "source " + source + " differs from the reference's after " +
                    step_text(expected->step) + ": found " + digest.text() + ", expected " +
                    expected->rng.at(source).text();
  for (const auto& [step, event] : subject.reference.steps)
    if (event->rng.contains(source) && event->rng.at(source) == digest) {
      finding.evidence.push_back({"equals instead", "the reference's after " + step_text(step)});
      if (step == 1 && subject.save_step() > 0) finding.cause = cause(CauseKind::kRngLost);
    }
  if (!finding.cause && !cause_named(judgement)) finding.cause = cause(CauseKind::kRngDrift);
  return finding;
}

/// Whether the source is where a fresh run's is: after one step, the reference's after step 1.
bool fresh_after_first_step(const Case& subject) {
  const StepEvent* found = subject.resumed.first();
  const StepEvent* fresh = subject.reference.step(1);
  const StepEvent* expected = expected_first(subject);
  if (found == nullptr || fresh == nullptr || expected == nullptr) return false;
  return std::any_of(found->rng.begin(), found->rng.end(), [&](const auto& source) {
    const auto initial = fresh->rng.find(source.first);
    const auto right = expected->rng.find(source.first);
    return initial != fresh->rng.end() && initial->second == source.second &&
           (right == expected->rng.end() || right->second != source.second);
  });
}

bool equals_other_rank(const Case& subject, const std::string& label, const EntryDifference& d) {
  if (d.found == nullptr) return false;
  return std::any_of(subject.disk->begin(), subject.disk->end(), [&](const auto& component) {
    if (component.first == label || component_of_label(component.first) != Component::kRng)
      return false;
    const auto item = component.second.find(d.path);
    return item != component.second.end() && item->second.digest == d.found->digest;
  });
}

}  // namespace

std::optional<std::uint64_t> batch_origin(const Case& subject, const Digest& batch) {
  for (const auto& [step, event] : subject.reference.steps)
    if (event->batch == batch) return step;
  return std::nullopt;
}

namespace {

/// Whether an entry of random state is another in two states that lie steps apart.
bool moves(const StateDigests& before, const StateDigests& after,
           const std::set<std::string>& paths) {
  for (const auto& [label, items] : before) {
    const Items* later = find_component(after, label);
    if (component_of_label(label) != Component::kRng || later == nullptr) continue;
    for (const auto& [path, item] : items) {
      const auto twin = later->find(path);
      // Comparisons of whole checkpoints name entries from their top.
      const bool meant = paths.contains(path) || paths.contains(item.root + path);
      if (meant && twin != later->end() && twin->second.digest != item.digest) return true;
    }
  }
  return false;
}

/// Of the reference, by what it told and by what it saved at N and at N + M.
bool moves_in_reference(const Case& subject, const std::set<std::string>& paths) {
  const auto& saves = subject.reference.saves;
  const auto before = saves.find(subject.save_step());
  const auto after = saves.find(subject.final_step());
  if (before != saves.end() && after != saves.end() && moves(before->second, after->second, paths))
    return true;
  const Observations& seen = subject.seen;
  return seen.reference_saved && seen.reference_final &&
         moves(seen.reference_saved->digests, seen.reference_final->digests, paths);
}

}  // namespace

bool rng_unused(const Case& subject, const std::set<std::string>& paths) {
  if (subject.reference.steps.empty() || paths.empty()) return false;
  if (moves_in_reference(subject, paths)) return false;
  const auto& sources = subject.reference.steps.begin()->second->rng;
  std::set<std::string, std::less<>> still;
  for (const auto& [source, digest] : sources)
    if (std::all_of(subject.reference.steps.begin(), subject.reference.steps.end(),
                    [&source = source, &digest = digest](const auto& step) {
                      const auto now = step.second->rng.find(source);
                      return now != step.second->rng.end() && now->second == digest;
                    }))
      still.insert(source);
  return std::all_of(paths.begin(), paths.end(), [&](std::string_view path) {
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      if (still.contains(path.substr(begin, end - begin))) return true;
      begin = end + 1;
    }
    return false;
  });
}

Diagnosis rng_cause(const Case& subject, const std::string& label, const Match& matched) {
  const auto& differences = matched.differences;
  const auto any = [&](auto&& condition) {
    return std::any_of(differences.begin(), differences.end(), condition);
  };
  if (any([](const EntryDifference& d) { return d.found == nullptr; }))
    return {cause(CauseKind::kRngLost)};
  if (label.find('.') != std::string::npos &&
      any([&](const EntryDifference& d) { return equals_other_rank(subject, label, d); }))
    return {cause(CauseKind::kRngRank)};
  if (any([&](const EntryDifference& d) { return equals_initial(subject, label, {d}); }) ||
      fresh_after_first_step(subject))
    return {cause(CauseKind::kRngLost)};
  const StepEvent* first = subject.resumed.first();
  const bool fresh_is_known =
      find_component(subject.init, label) != nullptr || (first != nullptr && !first->rng.empty());
  if (fresh_is_known) return {cause(CauseKind::kRngDrift)};
  return {unknown(Component::kRng), "rng-lost, rng-drift"};
}

Diagnosis data_cause(const Case& subject, const std::string&, const Match& matched) {
  const StepEvent* found = subject.resumed.first();
  const StepEvent* expected = expected_first(subject);
  const auto& differences = matched.differences;
  const bool order_alone = std::all_of(differences.begin(), differences.end(), is_order);
  const bool seen = found != nullptr && found->batch && expected != nullptr && expected->batch;
  if (!seen) return {cause(order_alone ? CauseKind::kDataOrder : CauseKind::kDataCursor)};
  const bool elsewhere = *found->batch != *expected->batch && batch_origin(subject, *found->batch);
  if (elsewhere) return {cause(CauseKind::kDataCursor)};
  return {cause(order_alone ? CauseKind::kDataOrder : CauseKind::kDataCursor)};
}

void judge_first_step(const Case& subject, Judgement& judgement) {
  if (subject.resumed.record == nullptr) return;
  judgement.findings.push_back(next_batch_finding(subject, judgement));
  const StepEvent* expected = expected_first(subject);
  if (expected == nullptr) return;
  for (const auto& [source, digest] : expected->rng)
    judgement.findings.push_back(source_finding(subject, source, judgement));
}

}  // namespace ckptverify::judging
