// checkpoints/
//   checkpoint-500/, checkpoint-1000/ | step-5/ | iter_0000100/ | global_step10/ | 100/
//   ckpt_12.pt, epoch=1-step=10.ckpt, last.ckpt
//   latest, latest_checkpointed_iteration.txt     pointers: text, or symbolic links
#include "formats/collection.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "formats/collection_pick.h"
#include "formats/container/checkpoint_names.h"
#include "formats/container/directory_names.h"
#include "formats/container/sharded_layout.h"

namespace ckptverify {
namespace {

// Formats that also hold loose files, which are several checkpoints where their names count steps.
constexpr std::string_view kLooseFiles = "rank-files";

CollectionItem item_of(const std::string& name, const CheckpointName& parsed) {
  return {
      .name = name, .step = parsed.step, .temporary = parsed.temporary, .family = parsed.family};
}

std::vector<CollectionItem> directory_items(const Source& source) {
  std::vector<CollectionItem> items;
  for (const std::string& name : top_directories(source))
    if (const auto parsed = directory_checkpoint_name(name))
      items.push_back(item_of(name, *parsed));
  return items;
}

std::vector<CollectionItem> file_items(const Source& source) {
  std::vector<CollectionItem> items;
  for (const std::string& name : top_files(source))
    if (const auto parsed = file_checkpoint_name(name)) items.push_back(item_of(name, *parsed));
  return items;
}

std::size_t numbered(const std::vector<CollectionItem>& items) {
  return static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(),
                    [](const CollectionItem& item) { return item.step.has_value(); }));
}

/// The items, empty where the source is one checkpoint or none.
std::vector<CollectionItem> find_items(const Source& source, const FormatTable& table) {
  std::vector<CollectionItem> directories = directory_items(source);
  std::vector<CollectionItem> files = file_items(source);
  const std::size_t series = numbered(directories);
  const Format* own = table.recognise(source);
  const bool one = own != nullptr && own->name != kLooseFiles;
  // Trainers of Hugging Face leave the final model beside the checkpoints of their run.
  const bool trainer = std::any_of(directories.begin(), directories.end(), [](const auto& item) {
    return item.family == "checkpoint-#" && !item.temporary;
  });
  if (one && !trainer && series < 2) return {};
  if (one && number_between(directory_name(source), "checkpoint-", "")) return {};
  if (series == 0 && numbered(files) + directories.size() < 2 &&
      (numbered(files) == 0 || files.size() < 2))
    return {};
  if (one) files.clear();
  directories.insert(directories.end(), std::make_move_iterator(files.begin()),
                     std::make_move_iterator(files.end()));
  return directories;
}

// Where the formats keep the step of a run.
constexpr std::array<std::string_view, 6> kStepPaths = {
    "step.global_step", "global_step", "step", "iteration", "step.step", "global_steps"};

std::optional<std::uint64_t> step_inside(const Checkpoint& checkpoint) {
  for (const std::string_view path : kStepPaths) {
    const Entry* entry = find_entry(checkpoint, path);
    const auto* value = entry == nullptr ? nullptr : std::get_if<Value>(&entry->node);
    const auto* step = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (step != nullptr && *step >= 0) return static_cast<std::uint64_t>(*step);
  }
  return std::nullopt;
}

void judge(const Checkpoint& checkpoint, CollectionItem& item) {
  item.format = checkpoint.format;
  item.wholeness = Wholeness::kWhole;
  if (!item.step) item.step = step_inside(checkpoint);
  std::size_t more = 0;
  for (const Finding& finding : checkpoint.findings) {
    if (finding.status != Status::kFail) continue;
    if (item.wholeness == Wholeness::kWhole) {
      item.why = finding.message;
      item.cause = finding.cause;
    }
    if (item.wholeness == Wholeness::kNotWhole) ++more;
    item.wholeness = Wholeness::kNotWhole;
  }
  if (more > 0) item.why += ", and " + std::to_string(more) + " more findings";
}

void read_item(const Source& source, const FormatTable& table, CollectionItem& item) {
  const bool file = source.has_member(item.name);
  const auto member = file ? source.member(item.name) : source.subdirectory(item.name);
  const auto fail = [&item](const Error& error) {
    item.why = error.text();
    const bool malformed = error.kind == ErrorKind::kMalformed;
    item.wholeness = malformed ? Wholeness::kNotWhole : Wholeness::kUnknown;
  };
  if (!member) return fail(member.error());
  const Format* format = table.recognise(*member);
  if (format != nullptr) item.format = format->name;
  const auto checkpoint = table.read(*member);
  if (!checkpoint) return fail(checkpoint.error());
  judge(*checkpoint, item);
}

bool before(const CollectionItem& a, const CollectionItem& b) {
  if (a.step != b.step) return a.step && (!b.step || *a.step < *b.step);
  return natural_less(a.name, b.name);
}

}  // namespace

std::string_view wholeness_name(Wholeness wholeness) {
  if (wholeness == Wholeness::kWhole) return "whole";
  return wholeness == Wholeness::kNotWhole ? "not whole" : "unknown";
}

Result<std::optional<Collection>> find_collection(const Source& source, const FormatTable& table) {
  if (!source.is_directory()) return std::optional<Collection>();
  Collection collection{.items = find_items(source, table)};
  if (collection.items.empty()) return std::optional<Collection>();
  for (CollectionItem& item : collection.items) read_item(source, table, item);
  std::stable_sort(collection.items.begin(), collection.items.end(), before);
  collection.pointers = find_pointers(source, collection.items);
  pick_item(source, collection);
  collection.findings = collection_findings(collection);
  return std::optional(std::move(collection));
}

Error name_one_of(const Source& source, const Collection& collection) {
  std::map<bool, std::string> names;  // whole or not
  for (const CollectionItem& item : collection.items) {
    std::string& list = names[item.wholeness == Wholeness::kWhole && !item.temporary];
    list += (list.empty() ? "" : ", ") + item.name;
  }
  const auto or_none = [](const std::string& list) { return list.empty() ? "none" : list; };
  return Error{.kind = ErrorKind::kUsage,
               .message = "a directory of checkpoints, name one of them; found whole: " +
                          or_none(names[true]) + "; not whole: " + or_none(names[false]),
               .subject = source.name()};
}

}  // namespace ckptverify
