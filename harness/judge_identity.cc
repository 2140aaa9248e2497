// One fingerprint, three places: live at the save, on disk, live after the restore. live != disk:
// the save is wrong. disk != restored: the restore is wrong.
#include <algorithm>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

std::string place_digest(const Items* items) {
  if (items == nullptr) return {};
  std::vector<std::pair<std::string, Digest>> entries;
  for (const auto& [path, item] : *items) entries.emplace_back(path, item.digest);
  return component_digest(std::move(entries)).text();
}

/// The part of the state under one label, in three places; null where it was not seen.
struct Places {
  std::string label;
  Component component = Component::kOther;
  const Items* live = nullptr;
  const Items* disk = nullptr;
  const Items* restored = nullptr;
};

/// Random state and the data cursor move once a batch is drawn: later evidence does not count.
bool counts(const Case& subject, Component component) {
  if (component != Component::kRng && component != Component::kDataCursor) return true;
  const auto& events = subject.resumed.restored_events;
  return std::all_of(events.begin(), events.end(), [&](const StateEvent* event) {
    return event->captured_at == "before_first_batch" ||
           (component == Component::kRng && event->captured_at == "before_first_forward");
  });
}

std::vector<std::string> labels_of(const Case& subject) {
  std::set<std::string> all;
  for (const auto& [label, items] : subject.live)
    if (!items.empty()) all.insert(label);
  if (subject.disk != nullptr)
    for (const auto& [label, items] : *subject.disk)
      if (!items.empty()) all.insert(label);
  std::vector<std::string> labels(all.begin(), all.end());
  std::stable_sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) {
    return component_of_label(a) < component_of_label(b);
  });
  return labels;
}

Places places_of(const Case& subject, const std::string& label) {
  Places places{.label = label, .component = component_of_label(label)};
  places.live = find_component(subject.live, label);
  if (subject.disk != nullptr) places.disk = find_component(*subject.disk, label);
  if (counts(subject, places.component))
    places.restored = find_component(subject.resumed.restored_state, label);
  return places;
}

bool any_tensor(const Places& places, const std::set<std::string>& paths) {
  const auto holds = [&paths](const Items* items) {
    return items != nullptr && std::any_of(items->begin(), items->end(), [&](const auto& item) {
             return item.second.is_tensor && paths.contains(item.first);
           });
  };
  return holds(places.live) || holds(places.disk);
}

/// A scale that is 1 throughout is a scaler that is off.
bool scaler_off(const Case& subject) {
  bool seen = false;
  for (const auto& [step, event] : subject.reference.steps) {
    if (!event->scale) continue;
    if (*event->scale != 1.0) return false;
    seen = true;
  }
  return seen;
}

/// The restored state says that this component is there and has nothing in it.
bool restored_empty(const Case& subject, const Places& places) {
  const auto restored = subject.resumed.restored_state.find(places.label);
  return counts(subject, places.component) && restored != subject.resumed.restored_state.end() &&
         restored->second.empty();
}

/// What is not the same in all places where the component was seen.
std::set<std::string> parted_paths(const Places& places) {
  std::set<std::string> paths;
  const auto hold = [&paths](const Items* expected, const Items* found) {
    if (expected == nullptr) return;
    for (const auto& [path, item] : *expected) {
      const auto twin = found == nullptr ? Items::const_iterator() : found->find(path);
      if (found == nullptr || twin == found->end() || twin->second.digest != item.digest)
        paths.insert(path);
    }
  };
  hold(places.live, places.disk);
  hold(places.disk, places.restored);
  return paths;
}

/// Why a wrong or absent component does not matter; empty if it does.
std::string unused(const Case& subject, const Places& places) {
  if (is_required(subject, places.component)) return {};
  if (places.component == Component::kRng && rng_unused(subject, parted_paths(places)))
    return "nothing draws from it up to " + step_text(subject.final_step());
  if (places.component == Component::kScaler && scaler_off(subject))
    return "the loss scale is 1 throughout: the scaler is off";
  return {};
}

void add_diagnosis(Finding& finding, const Diagnosis& diagnosis) {
  finding.cause = diagnosis.cause;
  if (!diagnosis.candidates.empty()) finding.evidence.push_back({"one of", diagnosis.candidates});
}

/// "entry a.b", "entry a.b and 3 more of 12".
std::string which_entries(const Match& matched) {
  std::string text = "entry " + matched.differences.front().path;
  const std::size_t count = matched.differences.size();
  if (count > 1)
    text += " and " + std::to_string(count - 1) + " more of " +
            std::to_string(matched.equal_count + count);
  return text;
}

void add_entries(Finding& finding, const Case& subject, const Places& places, const Match& matched,
                 const char* expected_name, const char* found_name) {
  constexpr std::size_t kShown = 3;  // the first few say it; the counts say how many
  for (std::size_t i = 0; i < std::min(kShown, matched.differences.size()); ++i) {
    const EntryDifference& difference = matched.differences[i];
    finding.evidence.push_back(
        {difference.path, std::string(expected_name) + " " +
                              item_text(difference.expected, difference.found) + ", " + found_name +
                              " " + item_text(difference.found, difference.expected)});
    const std::string instead = equals_instead(subject, places.label, difference);
    if (!instead.empty()) finding.evidence.push_back({"equals instead", instead});
  }
  finding.evidence.push_back({"entries that differ", std::to_string(matched.differences.size())});
  finding.evidence.push_back({"entries that are equal", std::to_string(matched.equal_count)});
}

Finding difference_finding(const Case& subject, const Places& places, const Match& matched,
                           bool at_save) {
  Finding finding{.check = "identity." + places.label,
                  .status = Status::kFail,
                  .subject = places.label,
                  .message = {}};
  const EntryDifference& first = matched.differences.front();
  const std::string what = places.label + ": " + which_entries(matched);
  const std::string expected = item_text(first.expected, first.found);
  const std::string found = item_text(first.found, first.expected);
  if (at_save) {
    finding.message = what + (first.found == nullptr
                                  ? " was live at the save and is not on disk; expected " + expected
                                  : " on disk is not the one that was live at the save: found " +
                                        found + ", expected " + expected);
  } else {
    finding.message =
        what + (first.found == nullptr
                    ? " is in the checkpoint and was not restored; expected " + expected
                    : " was not restored as saved: found " + found + ", expected " + expected);
  }
  const std::string instead = equals_instead(subject, places.label, first);
  if (!instead.empty()) finding.message += "; it equals " + instead;
  add_entries(finding, subject, places, matched, at_save ? "live" : "on disk",
              at_save ? "on disk" : "restored");
  add_diagnosis(finding, at_save ? save_cause(subject, places.label, matched)
                                 : restore_cause(subject, places.label, matched));
  return finding;
}

Finding absent_finding(const Places& places) {
  Finding finding{.check = "identity." + places.label,
                  .status = Status::kFail,
                  .subject = places.label,
                  .message = "the " + places.label + " state was live at the save (" +
                             count_text(places.live->size(), "entry") +
                             ") and the checkpoint has none of it"};
  if (places.component == Component::kOptimizer && !has_tensors(*places.live)) {
    finding.status = Status::kNotApplicable;
    finding.message = "the optimizer has no tensors, and the checkpoint has no optimizer";
    return finding;
  }
  add_diagnosis(finding, absent_cause(places.component));
  return finding;
}

Finding whole_finding(const Places& places, std::size_t entries) {
  Finding finding{.check = "identity." + places.label, .subject = places.label, .message = {}};
  if (places.live != nullptr && places.disk != nullptr && places.restored != nullptr) {
    finding.message = "the " + places.label +
                      " state is one in three places: " + count_text(entries, "entry") +
                      ", live = disk = restored";
    return finding;
  }
  finding.status = Status::kNotObserved;
  std::string unseen;
  if (places.live == nullptr) unseen += " live at the save,";
  if (places.disk == nullptr) unseen += " on disk,";
  if (places.restored == nullptr) unseen += " live after the restore,";
  unseen.pop_back();
  finding.message = "the " + places.label + " state was not seen" + unseen;
  return finding;
}

/// Told as a value and saved as a tensor, or the other way round: the instrument's mistake, or a
/// conversion that the trainer makes; no fault of the state.
Finding kind_finding(const Places& places, const Match& matched, bool at_save) {
  const EntryDifference& first = matched.other_kinds.front();
  const auto kind = [](const StateItem* item) {
    return std::string(item->is_tensor ? "a tensor" : "a value") +
           (item->text.empty() ? "" : " (" + item->text + ")");
  };
  Finding finding{.check = "identity." + places.label,
                  .status = Status::kInconclusive,
                  .subject = places.label,
                  .message = places.label + ": entry " + first.path};
  const StateItem* told = at_save ? first.expected : first.found;
  const StateItem* disk = at_save ? first.found : first.expected;
  finding.message += (at_save ? ": live it is " : ": restored it is ") + kind(told) + ", on disk " +
                     kind(disk) + ", so they cannot be compared; tell it as it is saved";
  finding.evidence.push_back(
      {"entries of another kind", std::to_string(matched.other_kinds.size())});
  return finding;
}

/// Entries on disk that the trainer never told: a value may be a remark; of a tensor it is open
/// whether it is state.
void tell_untold(Finding& finding, const Items& disk, const Items& told) {
  if (finding.status != Status::kPass || told.size() == disk.size()) return;
  std::string tensor;
  for (const auto& [path, item] : disk)
    if (item.is_tensor && tensor.empty() && !told.contains(path)) tensor = path;
  const std::size_t count = disk.size() - told.size();
  if (tensor.empty()) {
    finding.message += "; " + count_text(count, "value") + " more on disk not told as state";
    return;
  }
  finding.status = Status::kNotObserved;
  finding.message = "the " + finding.subject + " state on disk has " + count_text(count, "entry") +
                    " that the trainer does not tell, such as the tensor " + tensor;
}

Finding component_finding(const Case& subject, const Places& places) {
  if (places.live != nullptr && places.disk == nullptr && subject.disk != nullptr)
    return absent_finding(places);
  std::size_t entries = 0;
  bool unmatched = false;
  std::optional<Finding> other_kind;
  if (places.live != nullptr && places.disk != nullptr) {
    const Match saved = match(*places.live, *places.disk);
    if (!saved.differences.empty()) return difference_finding(subject, places, saved, true);
    unmatched = saved.unmatched_count > 0;
    if (!saved.other_kinds.empty()) other_kind = kind_finding(places, saved, true);
  }
  if (places.disk != nullptr && restored_empty(subject, places)) return absent_finding(places);
  const Items told = places.disk == nullptr ? Items() : told_part(*places.disk, places.live);
  if (places.disk != nullptr && places.restored != nullptr) {
    const Match restored = match(told, *places.restored);
    if (!restored.differences.empty()) return difference_finding(subject, places, restored, false);
    entries = restored.equal_count;
    unmatched = unmatched || restored.unmatched_count > 0;
    if (!other_kind && !restored.other_kinds.empty())
      other_kind = kind_finding(places, restored, false);
  }
  if (other_kind) return *std::move(other_kind);
  Finding finding = whole_finding(places, entries);
  if (places.disk != nullptr) tell_untold(finding, *places.disk, told);
  if (unmatched && finding.status == Status::kPass) {
    finding.status = Status::kNotObserved;
    finding.message = "entries of the " + places.label +
                      " state have other names live and on disk, and not all could be matched";
  }
  return finding;
}

/// What we could not read of a checkpoint may hold what seems to be missing.
bool read_whole(const Case& subject, const std::string& label) {
  const auto& findings = subject.seen.static_findings;
  const auto& record = subject.seen.restored_reference ? subject.seen.reference_saved
                                                       : subject.seen.interrupted_saved;
  return std::none_of(
             findings.begin(), findings.end(),
             [](const Finding& finding) { return finding.status == Status::kInconclusive; }) &&
         (!record || (record->unread.empty() && !record->opaque.contains(label) &&
                      !record->opaque.contains("other")));
}

/// Some of it lies on disk under other names, so that the rest may too.
bool lies_elsewhere(const Case& subject, const std::string& label) {
  return std::any_of(subject.misplaced.begin(), subject.misplaced.end(),
                     [&](const Misplaced& entry) { return entry.told_label == label; });
}

bool lacks_entries(const Places& places) {
  if (places.live == nullptr) return false;
  if (places.disk == nullptr) return true;
  const Match saved = match(*places.live, *places.disk);
  return std::any_of(saved.differences.begin(), saved.differences.end(),
                     [](const EntryDifference& d) { return d.fault == EntryFault::kMissing; });
}

/// What the run does not compute with is not applicable, or a warning; what we could not read is
/// not held against the checkpoint.
Finding soften(const Case& subject, const Places& places, Finding finding) {
  if (finding.status != Status::kFail) return finding;
  const bool whole = read_whole(subject, places.label);
  if ((!whole || lies_elsewhere(subject, places.label)) && lacks_entries(places)) {
    finding.status = Status::kInconclusive;
    finding.message += whole
                           ? "; other entries of it lie on disk under other names, so that is open"
                           : "; the checkpoint could not be read whole, so that is open";
    finding.cause.reset();
    return finding;
  }
  if (const std::string why = unused(subject, places); !why.empty()) {
    finding.status = Status::kNotApplicable;
    finding.message += "; " + why;
  } else if (is_incidental(subject, places.component) &&
             !any_tensor(places, parted_paths(places))) {
    finding.status = Status::kWarn;
  }
  if (finding.status != Status::kFail) finding.cause.reset();
  return finding;
}

/// With noise the reference's checkpoint is restored: the interrupted run's own is held against
/// what was live as it was saved.
void judge_interrupted(const Case& subject, Judgement& judgement) {
  const auto live = subject.interrupted.saves.find(subject.save_step());
  if (!subject.seen.restored_reference || !subject.seen.interrupted_saved) return;
  if (live == subject.interrupted.saves.end()) return;
  StateDigests told = live->second;
  StateDigests disk = subject.seen.interrupted_saved->digests;
  Finding whole{.check = "identity.interrupted", .subject = "interrupted run", .message = {}};
  std::size_t entries = 0;
  const std::vector<Misplaced> misplaced = find_misplaced(live->second, disk);
  take_out_told(told, misplaced);
  take_out_of_disk(disk, misplaced);
  for (const auto& [label, items] : told) {
    if (items.empty()) continue;
    const Places places{.label = label,
                        .component = component_of_label(label),
                        .live = &items,
                        .disk = find_component(disk, label)};
    const Finding finding = soften(subject, places, component_finding(subject, places));
    if (places.disk != nullptr) entries += match(items, *places.disk).equal_count;
    if (finding.status != Status::kFail && finding.status != Status::kInconclusive) continue;
    whole = finding;
    whole.check = "identity.interrupted";
    break;
  }
  if (whole.status == Status::kPass && entries == 0) return;  // other names: nothing was compared
  if (whole.status == Status::kPass)
    whole.message = "the interrupted run's own checkpoint is the state that was live: " +
                    count_text(entries, "entry");
  judgement.findings.push_back(std::move(whole));
}

void judge_misplaced(const Case& subject, Judgement& judgement) {
  for (const std::string& label : misplaced_labels(subject.misplaced)) {
    const std::string check = "identity." + label;
    const std::string message = misplaced_text(subject.misplaced, label);
    const Status status =
        is_incidental(subject, component_of_label(label)) ? Status::kWarn : Status::kInconclusive;
    auto& findings = judgement.findings;
    const auto other = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& finding) { return finding.check == check; });
    if (other == findings.end()) {
      findings.push_back({.check = check, .status = status, .subject = label, .message = message});
    } else if (other->status == Status::kFail) {  // of what lies where it should
      other->evidence.push_back({"besides", message});
    } else {
      other->status = status;
      other->message = message;
    }
  }
}

}  // namespace

void judge_identity(const Case& subject, Judgement& judgement) {
  for (const std::string& label : labels_of(subject)) {
    const Places places = places_of(subject, label);
    Finding finding = soften(subject, places, component_finding(subject, places));
    judgement.identity.push_back({label, place_digest(places.live), place_digest(places.disk),
                                  place_digest(places.restored), finding.status});
    const auto misplaced = misplaced_labels(subject.misplaced);
    if (finding.status == Status::kPass &&
        std::find(misplaced.begin(), misplaced.end(), label) == misplaced.end())
      judgement.proven.push_back("the " + label + " state on disk is the one that trained: " +
                                 count_text(places.disk->size(), "entry") +
                                 ", live = disk = restored");
    judgement.findings.push_back(std::move(finding));
  }
  judge_misplaced(subject, judgement);
  judge_interrupted(subject, judgement);
}

}  // namespace ckptverify::judging
