// The second save, of a run that was restored: whole by its bytes alone, and the state that was
// live. Two runs whose second saves are wrong alike are equal, so equality does not show it.
#include <algorithm>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

Finding readable_finding(const Case& subject) {
  const std::string step = step_text(subject.final_step());
  Finding finding{.check = "resave.readable", .subject = "checkpoint at " + step, .message = {}};
  finding.message = "the checkpoint of " + step + " is whole by its bytes alone";
  std::vector<Finding> all = subject.seen.final_findings;
  const std::vector<std::string> misplaced = misplaced_labels(subject.misplaced);
  std::erase_if(all, [&](const Finding& candidate) {  // said of the first save
    return candidate.check == "static.components" &&
           std::find(misplaced.begin(), misplaced.end(), candidate.subject) != misplaced.end();
  });
  // Damage comes before what seems to be missing because of it.
  std::stable_partition(all.begin(), all.end(), [](const Finding& candidate) {
    return candidate.check != "static.components";
  });
  for (const Status status : {Status::kFail, Status::kInconclusive}) {
    const auto worst = std::find_if(all.begin(), all.end(), [status](const Finding& candidate) {
      return candidate.status == status;
    });
    if (worst == all.end()) continue;
    finding.status = status;
    finding.cause = worst->cause;
    finding.message = "the checkpoint of " + step + " is not whole: " + worst->message;
    finding.evidence = worst->evidence;
    return finding;
  }
  return finding;
}

/// The writer of one of the two checkpoints at N + M.
struct Writer {
  const char* name;
  const RunView& run;
  const std::optional<CheckpointRecord>& saved;
};

/// Every difference is what the same run, or the reference, had at another save.
bool is_of_another_save(const Case& subject, const std::string& label, const Match& matched) {
  return std::all_of(
      matched.differences.begin(), matched.differences.end(), [&](const EntryDifference& d) {
        if (d.found == nullptr) return false;
        return std::any_of(subject.reference.saves.begin(), subject.reference.saves.end(),
                           [&](const auto& save) {
                             const Items* items = find_component(save.second, label);
                             if (save.first == subject.final_step() || items == nullptr)
                               return false;
                             const auto item = items->find(d.path);
                             return item != items->end() && item->second.digest == d.found->digest;
                           });
      });
}

/// The first component on disk that is not the one that was live; nothing where all are.
std::optional<Finding> difference_of(const Case& subject, const Writer& writer,
                                     std::size_t& compared) {
  const auto live = writer.run.saves.find(subject.final_step());
  if (live == writer.run.saves.end() || !writer.saved) return std::nullopt;
  StateDigests told = live->second;
  take_out_told(told, find_misplaced(told, writer.saved->digests));
  for (const auto& [label, items] : told) {
    const Component component = component_of_label(label);
    const Items* disk = find_component(writer.saved->digests, label);
    // What is not computed with, or not saved at all, was judged at N.
    if (component == Component::kConfig || component == Component::kOther || disk == nullptr)
      continue;
    const Match matched = match(items, *disk);
    compared += matched.equal_count;
    if (matched.differences.empty()) continue;
    const EntryDifference& first = matched.differences.front();
    Finding finding{
        .check = "resave.identity", .status = Status::kFail, .subject = label, .message = {}};
    finding.message = "the " + std::string(writer.name) + "'s checkpoint of " +
                      step_text(subject.final_step()) +
                      " is not the state that was live: " + label + " entry " + first.path +
                      ", found " + item_text(first.found, first.expected) + ", expected " +
                      item_text(first.expected, first.found);
    finding.evidence.push_back({"entries that differ", std::to_string(matched.differences.size())});
    if (is_of_another_save(subject, label, matched)) finding.cause = cause(CauseKind::kAsyncTorn);
    return finding;
  }
  return std::nullopt;
}

Finding identity_finding(const Case& subject) {
  const std::string step = step_text(subject.final_step());
  std::size_t compared = 0;
  for (const Writer& writer : {Writer{"reference", subject.reference, subject.seen.reference_final},
                               Writer{"resumed run", subject.resumed, subject.seen.resumed_final}})
    if (auto finding = difference_of(subject, writer, compared)) return *std::move(finding);
  Finding finding{.check = "resave.identity", .subject = "checkpoint at " + step, .message = {}};
  if (compared == 0) {
    finding.status = Status::kNotObserved;
    finding.message = "no state was seen live at the saves of " + step;
    return finding;
  }
  finding.message = "the checkpoints of " + step + " are the states that were live at their saves";
  return finding;
}

}  // namespace

void judge_resave(const Case& subject, Judgement& judgement) {
  if (!subject.seen.resumed_final && subject.seen.final_findings.empty()) return;
  const bool explained = cause_named(judgement);
  for (Finding finding : {readable_finding(subject), identity_finding(subject)}) {
    if (explained) finding.cause.reset();
    judgement.findings.push_back(std::move(finding));
  }
}

}  // namespace ckptverify::judging
