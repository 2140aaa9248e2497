// Pointers count before numbers, as in every framework that writes them.
#include "formats/collection_pick.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ckptverify/count_text.h"
#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCheck = "static.collection";
// Longer than any name that a directory can have.
constexpr std::size_t kTargetSizeMax = 4096;
constexpr std::string_view kMegatron = "latest_checkpointed_iteration.txt";
constexpr std::array<std::string_view, 8> kPointers = {kMegatron,
                                                       "latest",
                                                       "latest.txt",
                                                       "LATEST",
                                                       "last",
                                                       "last_checkpoint",
                                                       "latest_checkpoint.txt",
                                                       "latest_universal"};

std::string last_part(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n/") + 1);
  const std::size_t slash = text.find_last_of('/');
  return slash == std::string::npos ? text : text.substr(slash + 1);
}

std::optional<std::size_t> item_named(const std::vector<CollectionItem>& items,
                                      std::string_view name) {
  const auto place = std::find_if(items.begin(), items.end(), [name](const CollectionItem& item) {
    return item.name == name || item.name.substr(0, item.name.rfind('.')) == name;
  });
  if (place == items.end()) return std::nullopt;
  return static_cast<std::size_t>(place - items.begin());
}

/// Megatron's tracker holds a number, whose directory is padded to seven digits.
std::optional<std::size_t> item_of_iteration(const std::vector<CollectionItem>& items,
                                             std::string_view text) {
  const auto number = number_between(text, "", "");
  for (std::size_t i = 0; number && i < items.size(); ++i)
    if (number_between(items[i].name, "iter_", "") == number) return i;
  return std::nullopt;
}

CollectionPointer text_pointer(const Source& source, std::string_view name,
                               const std::vector<CollectionItem>& items) {
  CollectionPointer pointer{.name = std::string(name), .target = {}};
  if (const auto file = source.member(name))
    pointer.target = last_part(std::string(as_text(file->bytes()).substr(0, kTargetSizeMax)));
  pointer.item = item_named(items, pointer.target);
  if (name == kMegatron && !pointer.item) pointer.item = item_of_iteration(items, pointer.target);
  return pointer;
}

/// A symbolic link in the folder; none where it is no link, or leads to no sibling.
std::optional<CollectionPointer> link_pointer(const Source& source, const std::string& name,
                                              const std::vector<CollectionItem>& items) {
  if (source.path().empty() || name.find('/') != std::string::npos) return std::nullopt;
  std::error_code error;
  const fs::path target = fs::read_symlink(source.path() / name, error);
  if (error) return std::nullopt;
  CollectionPointer pointer{.name = name, .target = last_part(target.string())};
  pointer.item = item_named(items, pointer.target);
  pointer.resumes = !name.starts_with("best");
  const bool known = std::find(kPointers.begin(), kPointers.end(), name) != kPointers.end() ||
                     name.starts_with("last") || name.starts_with("latest");
  return pointer.item || known ? std::optional(std::move(pointer)) : std::nullopt;
}

/// The best of the items for which `counts` holds: the highest step.
template <class Counts>
std::optional<std::size_t> highest(const std::vector<CollectionItem>& items, Counts counts) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].step || !counts(items[i])) continue;
    if (!best || *items[i].step >= *items[*best].step) best = i;
  }
  return best;
}

bool is_whole(const CollectionItem& item) {
  return item.wholeness == Wholeness::kWhole && !item.temporary;
}

bool any_of_family(const Collection& collection, std::string_view family) {
  return std::any_of(
      collection.items.begin(), collection.items.end(),
      [family](const CollectionItem& item) { return item.family == family && !item.temporary; });
}

/// Lightning's "last": the newest file of that name.
std::optional<std::size_t> newest_last(const Source& source, const Collection& collection) {
  std::optional<std::size_t> newest;
  fs::file_time_type time = fs::file_time_type::min();
  for (std::size_t i = 0; i < collection.items.size(); ++i) {
    const CollectionItem& item = collection.items[i];
    if (item.temporary || (item.family != "last" && item.family != "last-v#")) continue;
    if (!item.name.ends_with(".ckpt")) continue;
    std::error_code error;
    const auto written = source.path().empty()
                             ? fs::file_time_type::min()
                             : fs::last_write_time(source.path() / item.name, error);
    if (newest && (error || written < time)) continue;
    newest = i;
    time = written;
  }
  return newest;
}

Finding finding(Status status, CauseKind cause, const std::string& subject,
                const std::string& message) {
  return {.check = std::string(kCheck),
          .status = status,
          .cause = Cause{cause, {}},
          .subject = subject,
          .message = subject + ": " + message};
}

/// What a program that sorts names as text would take, where that is another one.
std::optional<std::string> text_order_trap(const Collection& collection) {
  const auto newest = highest(collection.items, [](const auto& item) { return !item.temporary; });
  if (!newest) return std::nullopt;
  const CollectionItem& item = collection.items[*newest];
  std::string last = item.name;
  for (const CollectionItem& other : collection.items)
    if (other.family == item.family && !other.temporary) last = std::max(last, other.name);
  if (last == item.name) return std::nullopt;
  return "a program that sorts the names as text takes " + last + " for the newest, not " +
         item.name;
}

std::string item_text(const CollectionItem& item) {
  std::string text = item.step ? "step " + std::to_string(*item.step) + ", " : "";
  text += item.format.empty() ? "no known format" : item.format;
  text += ", " + std::string(wholeness_name(item.wholeness));
  if (item.temporary) text += ", temporary name";
  return item.why.empty() ? text : text + ": " + item.why;
}

Finding summary(const Collection& collection) {
  const auto whole = std::count_if(collection.items.begin(), collection.items.end(), is_whole);
  const auto name_of = [&](const std::optional<std::size_t>& item) {
    return item ? collection.items[*item].name : std::string("none");
  };
  Finding finding{.check = std::string(kCheck),
                  .message = count_text(collection.items.size(), "checkpoint") + ", " +
                             std::to_string(whole) + " whole; a resume picks " +
                             name_of(collection.pick) + ", the newest whole one is " +
                             name_of(collection.newest_whole),
                  .evidence = {{"rule", collection.rule}}};
  for (const CollectionItem& item : collection.items)
    finding.evidence.push_back({item.name, item_text(item)});
  for (const CollectionPointer& pointer : collection.pointers)
    finding.evidence.push_back({"pointer " + pointer.name, pointer.target});
  if (const auto trap = text_order_trap(collection)) finding.evidence.push_back({"order", *trap});
  return finding;
}

/// Of one that is not whole: a state that was never saved beside the others is lost, whoever picks
/// it; anything else a save leaves that was not finished.
CauseKind cause_of(const CollectionItem& item) {
  constexpr std::array kLosses = {CauseKind::kOptLost, CauseKind::kSchedLost, CauseKind::kScaler,
                                  CauseKind::kRngLost, CauseKind::kStepCount, CauseKind::kEma};
  const CauseKind kind = item.cause ? item.cause->kind : CauseKind::kUncommitted;
  const bool lost = std::find(kLosses.begin(), kLosses.end(), kind) != kLosses.end();
  return lost ? kind : CauseKind::kUncommitted;
}

void judge_pick(const Collection& collection, std::vector<Finding>& findings) {
  if (!collection.pick) {
    if (!collection.newest_whole)
      findings.push_back(finding(Status::kFail, CauseKind::kUncommitted, "resume",
                                 "there is no whole checkpoint to resume from"));
    return;
  }
  const CollectionItem& pick = collection.items[*collection.pick];
  if (pick.wholeness == Wholeness::kUnknown) {
    Finding unknown = finding(Status::kInconclusive, {}, pick.name,
                              "a resume picks it, and it cannot be read here: " + pick.why);
    unknown.cause.reset();
    findings.push_back(std::move(unknown));
  } else if (!is_whole(pick)) {
    findings.push_back(finding(Status::kFail, cause_of(pick), pick.name,
                               "a resume picks it, and it is not whole: " + pick.why));
  } else if (collection.newest_whole && pick.step &&
             collection.items[*collection.newest_whole].step > pick.step) {
    const CollectionItem& newest = collection.items[*collection.newest_whole];
    findings.push_back(finding(Status::kWarn, CauseKind::kWrongStart, pick.name,
                               "a resume picks it, and a newer whole one is there; found step " +
                                   std::to_string(*pick.step) + ", expected " + newest.name));
  }
}

}  // namespace

std::vector<CollectionPointer> find_pointers(const Source& source,
                                             const std::vector<CollectionItem>& items) {
  std::vector<CollectionPointer> pointers;
  for (const std::string_view name : kPointers)
    if (source.has_member(name)) pointers.push_back(text_pointer(source, name, items));
  for (const std::string& name : source.refused())
    if (auto pointer = link_pointer(source, name, items)) pointers.push_back(*std::move(pointer));
  return pointers;
}

void pick_item(const Source& source, Collection& collection) {
  collection.newest_whole = highest(collection.items, is_whole);
  const auto committed = [](const CollectionItem& item) { return !item.temporary; };
  for (const CollectionPointer& pointer : collection.pointers) {
    if (!pointer.resumes) continue;
    collection.pick = pointer.item;
    collection.rule = "the checkpoint that `" + pointer.name + "` names";
    return;
  }
  if (const auto last = newest_last(source, collection)) {
    collection.pick = last;
    collection.rule = "Lightning's ckpt_path=\"last\" takes the newest file called last";
    return;
  }
  if (any_of_family(collection, "step-#") &&
      std::any_of(collection.items.begin(), collection.items.end(),
                  [](const CollectionItem& item) { return item.format == "sharded"; })) {
    collection.pick = collection.newest_whole;
    collection.rule = "the highest step whose index and digest are there";
    return;
  }
  collection.pick = highest(collection.items, committed);
  if (any_of_family(collection, "checkpoint-#"))
    collection.rule = "the Hugging Face Trainer takes the highest number, complete or not";
  else if (any_of_family(collection, "checkpoint_#"))
    collection.rule = "Accelerate takes the highest number, complete or not";
  else if (any_of_family(collection, "#"))
    collection.rule = "Orbax takes the highest number without a temporary name";
  else
    collection.rule = "no pointer is there: the highest number, by convention";
}

std::vector<Finding> collection_findings(const Collection& collection) {
  std::vector<Finding> findings = {summary(collection)};
  for (const CollectionPointer& pointer : collection.pointers)
    if (!pointer.item && pointer.resumes)
      findings.push_back(finding(Status::kFail, CauseKind::kUncommitted, pointer.name,
                                 "points to nothing; found '" + pointer.target +
                                     "', expected one of the checkpoints here"));
  judge_pick(collection, findings);
  for (std::size_t i = 0; i < collection.items.size(); ++i) {
    const CollectionItem& item = collection.items[i];
    if (is_whole(item) || collection.pick == i) continue;
    Finding left = finding(Status::kWarn, CauseKind::kUncommitted, item.name,
                           item.temporary ? "was never given its last name"
                                          : "is not whole, and no resume picks it: " + item.why);
    left.cause.reset();
    findings.push_back(std::move(left));
  }
  return findings;
}

}  // namespace ckptverify
