// Plain files in a directory, as scripts without a checkpointing library write them.
//
//   rank0.pt, rank1.pt, ... | ckpt_rank_3.pt | mp_rank_00.pt     everything of one rank
//   rng_state_0.pth, rng_state_1.pth                             one component of one rank
//   ckpt.pt                                                      everything of all
//   model.pt, optimizer.pt, scheduler.pt                         one component each
#include "formats/rank_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/container/checkpoint_names.h"
#include "formats/container/directory_names.h"
#include "formats/container/generation.h"
#include "formats/container/model_files.h"
#include "formats/container/rank_set.h"
#include "formats/container/replicas.h"

namespace ckptverify {
namespace {

constexpr std::string_view kDigits = "0123456789";
// What stands before the number of a rank.
constexpr std::array<std::string_view, 4> kRankWords = {"rank", "rng_state", "random_state",
                                                        "shard"};

/// "ckpt_rank_" and ".pt" around the 3 of "ckpt_rank_3.pt".
struct RankName {
  std::string prefix;
  std::string suffix;
};

std::optional<RankName> rank_name(const std::string& name) {
  if (!has_checkpoint_extension(name)) return std::nullopt;
  for (const std::string_view word : kRankWords) {
    const std::size_t place = name.rfind(word);
    if (place == std::string::npos) continue;
    std::size_t begin = place + word.size();
    if (begin < name.size() && (name[begin] == '_' || name[begin] == '-' || name[begin] == 's'))
      ++begin;
    if (begin < name.size() && name[begin] == '_') ++begin;
    const std::size_t end = std::min(name.find_first_not_of(kDigits, begin), name.size());
    if (end == begin) continue;
    return RankName{.prefix = name.substr(0, begin), .suffix = name.substr(end)};
  }
  return std::nullopt;
}

std::string stem_of(const std::string& name) {
  return name.substr(0, name.rfind('.'));
}

/// The component that the name states: "rng_state_" and "optimizer", not "ckpt_rank_".
Component component_of_name(std::string stem) {
  stem.erase(stem.find_last_not_of("_-") + 1);
  const std::size_t rank = stem.find("rank");
  if (rank != std::string::npos) stem.erase(rank);
  stem.erase(stem.find_last_not_of("_-") + 1);
  return component_of_key(stem);
}

/// "optimizer 1" for "optimizer_1": a second one of a kind is told by its number.
std::string numbered_name(const std::string& stem, Component component) {
  const std::size_t last = stem.find_last_not_of(kDigits);
  return std::string(component_name(component)) + " " + stem.substr(last + 1);
}

/// The one component that the file is, as its reader says; none where it holds several.
std::optional<Component> only_component(const std::vector<Entry>& entries) {
  if (entries.empty()) return std::nullopt;
  const Component first = entries.front().component;
  const bool alone = std::all_of(entries.begin(), entries.end(), [first](const Entry& entry) {
    return entry.component == first && entry.root_size == 0;
  });
  return alone ? std::optional(first) : std::nullopt;
}

/// A file that is one component gets its root; one of several has the roots in its keys.
Role role_of(const std::string& stem, const std::vector<Entry>& entries) {
  const auto only = only_component(entries);
  if (!only) return {};
  const Component named = component_of_name(stem);
  const Component component = named == Component::kOther ? *only : named;
  if (component == Component::kOther) return {};
  return {.root = std::string(component_name(component)) + ".", .component = component};
}

/// Whether names say that the files are parts of one save: numbers of ranks; or one component each,
/// beside at most one file that holds the rest. "best.ckpt" and "weights.ckpt" say no such thing:
/// they are two checkpoints, and one state made of both would be nobody's.
bool belong_together(const std::vector<std::string>& files) {
  if (files.size() == 1) return true;
  if (std::any_of(files.begin(), files.end(),
                  [](const std::string& name) { return rank_name(name).has_value(); }))
    return true;
  std::set<std::string> components;  // named
  std::size_t others = 0;
  bool model = false;
  for (const std::string& name : files) {
    const std::string stem = stem_of(name);
    const Component component = component_of_name(stem);
    model = model || component == Component::kModel;
    if (component == Component::kOther)
      ++others;
    else if (!components.insert(numbered_name(stem, component)).second)
      return false;
  }
  return others == 0 || (others == 1 && (!model || components.size() > 1));
}

class Reader {
 public:
  Reader(const Source& directory, const FormatTable& table)
      : assembly_("rank-files", directory, table), directory_(directory) {}
  Checkpoint read() &&;

 private:
  std::vector<RankEntries> add_ranks(const RankName& name);
  void check_steps(const std::vector<RankEntries>& ranks, const std::string& set);
  void add_others();

  Assembly assembly_;
  const Source& directory_;
  std::set<std::string> roots_;  // of the files that are no rank's
};

/// The files of one set, each rank's entries still apart.
std::vector<RankEntries> Reader::add_ranks(const RankName& name) {
  const std::string set = name.prefix + "*" + name.suffix;
  const auto files = rank_files_in(directory_, name.prefix, name.suffix);
  // Some count ranks from one.
  const bool from_one = !files.empty() && files.front().rank == 1;
  check_ranks(assembly_, files, rank_count(files), set, from_one ? 1 : 0);
  std::vector<RankEntries> ranks;
  std::vector<Entry>& all = assembly_.checkpoint().entries;
  for (const RankFile& file : files) {
    auto part = assembly_.read(file.name);
    if (!part) continue;
    const Role role = role_of(name.prefix, part->entries);
    const std::size_t before = all.size();
    assembly_.absorb(*std::move(part), role);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(before);
    ranks.push_back(
        {.rank = file.rank,
         .entries = {std::make_move_iterator(begin), std::make_move_iterator(all.end())}});
    all.erase(begin, all.end());
  }
  check_steps(ranks, set);
  return ranks;
}

/// Ranks save together: two that count differently are of two saves.
void Reader::check_steps(const std::vector<RankEntries>& ranks, const std::string& set) {
  std::map<std::string, std::vector<std::pair<std::uint32_t, std::int64_t>>> counts;
  for (const RankEntries& rank : ranks)
    for (const Entry& entry : rank.entries) {
      const auto* value = std::get_if<Value>(&entry.node);
      const auto* count = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
      if (count != nullptr && entry.component == Component::kStep)
        counts[entry.path].emplace_back(rank.rank, *count);
    }
  for (const auto& [path, of_ranks] : counts) {
    const auto [least, most] =
        std::minmax_element(of_ranks.begin(), of_ranks.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    if (least->second == most->second) continue;
    std::vector<Evidence> evidence;
    for (const auto* one : {&*least, &*most})
      evidence.push_back({"rank " + std::to_string(one->first), std::to_string(one->second)});
    return mixed_steps(assembly_.checkpoint(), Status::kFail, set,
                       "ranks are of different saves; found " + path + " " +
                           std::to_string(least->second) + " and " + std::to_string(most->second) +
                           ", expected one",
                       std::move(evidence));
  }
}

void Reader::add_others() {
  add_model_settings(assembly_);
  for (const std::string& name : top_files(directory_)) {
    if (assembly_.is_used(name)) continue;
    if (!has_checkpoint_extension(name)) {
      if (name.ends_with(".json"))
        assembly_.add_json(name, {.root = stem_of(name) + ".",
                                  .component = component_of_key(stem_of(name)),
                                  .component_root = 0});
      continue;
    }
    auto part = assembly_.read(name);
    if (!part) continue;
    Role role = role_of(stem_of(name), part->entries);
    // A second state of one kind (an average, an earlier one) is told apart by its name.
    if (!roots_.insert(role.root).second) {
      role.root = stem_of(name) + ".";
      role.component_root = 0;
    }
    assembly_.absorb(*std::move(part), role);
  }
}

Checkpoint Reader::read() && {
  std::set<std::string> done;
  std::vector<Entry> merged;
  for (const std::string& file : top_files(directory_)) {
    const auto name = rank_name(file);
    if (!name || !done.insert(name->prefix + "*" + name->suffix).second) continue;
    auto ranks = add_ranks(*name);
    auto entries = merge_ranks(assembly_.checkpoint(), std::move(ranks), assembly_.table().depth());
    std::move(entries.begin(), entries.end(), std::back_inserter(merged));
  }
  add_others();
  std::vector<Entry>& all = assembly_.checkpoint().entries;
  std::move(merged.begin(), merged.end(), std::back_inserter(all));
  return std::move(assembly_).finish();
}

}  // namespace

bool sniff_rank_files(const Source& source) {
  if (!source.is_directory()) return false;
  std::vector<std::string> files;
  std::size_t steps = 0;
  for (const std::string& name : top_files(source)) {
    if (!has_checkpoint_extension(name)) continue;
    files.push_back(name);
    const auto checkpoint = file_checkpoint_name(name);
    if (checkpoint && checkpoint->step) ++steps;
  }
  return !files.empty() && steps < 2 && belong_together(files);
}

Result<Checkpoint> read_rank_files(const Source& source, const FormatTable& table) {
  return Reader(source, table).read();
}

}  // namespace ckptverify
