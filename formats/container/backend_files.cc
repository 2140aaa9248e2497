// Directories are read by the format that recognises them.
#include "formats/container/backend_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/container/directory_names.h"
#include "formats/container/rank_set.h"

namespace ckptverify {
namespace {

constexpr std::string_view kLatest = "latest";
// Text of a tag; anything longer is no directory's name.
constexpr std::size_t kTagSizeMax = 255;

struct Part {
  std::string_view stem;  // of names on disk
  std::string_view root;  // of paths
  Component component;
};
constexpr std::array kParts = {
    Part{"pytorch_model_fsdp", "model", Component::kModel},
    Part{"optimizer", "optimizer", Component::kOptimizer},
};

/// "model." for the first, "model_1." for the second, which is no root of the component.
Role numbered_role(const Part& part, std::uint64_t number) {
  Role role{.root = std::string(part.root) + ".", .component = part.component};
  if (number == 0) return role;
  role.root = std::string(part.root) + "_" + std::to_string(number) + ".";
  role.component_root = 0;
  return role;
}

bool is_dcp_directory(const Source& directory, const std::string& name) {
  const auto& members = directory.members();
  const std::string prefix = name + "/";
  auto member = std::lower_bound(members.begin(), members.end(), prefix);
  for (; member != members.end() && member->starts_with(prefix); ++member)
    if (member->ends_with(".distcp") || member->ends_with("/.metadata")) return true;
  return false;
}

/// One more than the highest rank among __<rank>_<i>.distcp below the directory.
std::uint64_t distcp_ranks(const Source& directory, const std::string& name) {
  std::uint64_t count = 0;
  const std::string prefix = name + "/__";
  for (const std::string& member : directory.members()) {
    if (!member.starts_with(prefix)) continue;
    const std::size_t end = member.find('_', prefix.size());
    const auto rank = number_between(member.substr(0, end), prefix, "");
    if (rank && *rank < UINT32_MAX) count = std::max(count, *rank + 1);
  }
  return count;
}

/// The directories <stem>_<number> that hold DCP files.
std::map<std::uint64_t, std::string> dcp_directories(const Source& directory, const Part& part) {
  std::map<std::uint64_t, std::string> found;
  for (const std::string& name : top_directories(directory)) {
    const auto number = number_between(name, std::string(part.stem) + "_", "");
    if (number && is_dcp_directory(directory, name)) found.emplace(*number, name);
  }
  return found;
}

/// Files of one rank each: <stem>_rank3.bin and <stem>_0_rank3.bin are one set each.
std::map<std::string, std::vector<RankFile>> rank_sets(const Source& directory, const Part& part) {
  std::map<std::string, std::vector<RankFile>> sets;
  constexpr std::string_view kRank = "_rank";
  for (const std::string& name : top_files(directory)) {
    const std::size_t place = name.rfind(kRank);
    if (place == std::string::npos || !name.ends_with(".bin")) continue;
    const std::string head = name.substr(0, place);
    if (head != part.stem && !number_between(head, std::string(part.stem) + "_", "")) continue;
    const std::string prefix = head + std::string(kRank);
    if (!sets.contains(prefix)) sets[prefix] = rank_files_in(directory, prefix, ".bin");
  }
  std::erase_if(sets, [](const auto& set) { return set.second.empty(); });
  return sets;
}

void add_rank_set(Assembly& assembly, const Part& part, const std::string& prefix,
                  const std::vector<RankFile>& files) {
  const auto number = number_between(prefix, std::string(part.stem) + "_", "_rank").value_or(0);
  check_ranks(assembly, files, rank_count(files), prefix + "*.bin");
  for (const RankFile& file : files) {
    Role role = numbered_role(part, number);
    role.root += std::to_string(file.rank) + ".";
    role.rank = file.rank;
    assembly.add(file.name, role);
  }
}

/// The tag in a DeepSpeed directory's `latest`, if it can be one.
std::optional<std::string> latest_tag(const Source& directory) {
  const auto file = directory.member(kLatest);
  if (!file) return std::nullopt;
  std::string tag(as_text(file->bytes()).substr(0, kTagSizeMax + 1));
  tag.erase(tag.find_last_not_of(" \t\r\n") + 1);
  if (tag.empty() || tag.size() > kTagSizeMax || tag.find('/') != std::string::npos)
    return std::nullopt;
  return tag;
}

/// Directories that a DeepSpeed engine has written here: they hold its files.
std::vector<std::string> deepspeed_directories(const Source& directory) {
  std::vector<std::string> found;
  for (const std::string& member : directory.members()) {
    const std::size_t slash = member.find('/');
    // Deeper ones are of a checkpoint in a folder of several.
    if (slash == std::string::npos || member.find('/', slash + 1) != std::string::npos) continue;
    std::string name = member.substr(0, slash);
    const bool state = member.ends_with("_model_states.pt") || member.ends_with("_optim_states.pt");
    if (state && (found.empty() || found.back() != name)) found.push_back(std::move(name));
  }
  std::sort(found.begin(), found.end(), natural_less);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// DeepSpeed repeats the model that lies beside it, and has a step, settings and a schedule of its
/// own: those stand under "deepspeed.", so that no path of the trainer's files is the same.
void keep_apart(const Checkpoint& trainer, std::vector<Entry>& entries) {
  const bool weights =
      std::any_of(trainer.entries.begin(), trainer.entries.end(),
                  [](const Entry& entry) { return entry.component == Component::kModel; });
  constexpr std::string_view kRoot = "deepspeed.";
  for (Entry& entry : entries) {
    if (entry.component == Component::kOptimizer) continue;
    if ((entry.component == Component::kModel && !weights) || entry.path.starts_with(kRoot))
      continue;
    entry.path.insert(0, kRoot);
    if (!entry.alias_of.empty()) entry.alias_of.insert(0, kRoot);
    entry.root_size = 0;
  }
}

void add_deepspeed(Assembly& assembly, const std::vector<std::string>& directories) {
  const Source& source = assembly.directory();
  std::string taken = directories.back();
  if (source.has_member(kLatest)) {
    assembly.add_accessory(std::string(kLatest));
    const auto tag = latest_tag(source);
    if (tag && has_directory(source, *tag))
      taken = *tag;
    else
      assembly.fail(
          CauseKind::kUncommitted, std::string(kLatest),
          "points to nothing; found '" + tag.value_or("no name") + "', expected a directory here");
  } else {
    assembly.fail(CauseKind::kUncommitted, std::string(kLatest),
                  "is missing, and DeepSpeed writes it last; found no file, expected one that "
                  "names " +
                      taken);
  }
  for (const std::string& name : directories) {
    if (name == taken) continue;
    assembly.leave_out(name);
    assembly.warn(name, "is another save of the same engine, which `latest` does not name");
  }
  auto part = assembly.read(taken);
  if (!part) return;
  keep_apart(assembly.checkpoint(), part->entries);
  assembly.absorb(*std::move(part), {});
}

}  // namespace

BackendFiles find_backend_files(const Source& directory) {
  BackendFiles found;
  for (const Part& part : kParts) {
    bool& there = part.component == Component::kModel ? found.model : found.optimizer;
    for (const auto& [number, name] : dcp_directories(directory, part)) {
      there = true;
      found.rank_count = std::max(found.rank_count, distcp_ranks(directory, name));
    }
    for (const auto& [prefix, files] : rank_sets(directory, part)) {
      there = true;
      found.rank_count = std::max(found.rank_count, rank_count(files));
    }
  }
  for (const std::string& name : top_files(directory))
    if (name == "pytorch_model_fsdp.bin" || number_between(name, "pytorch_model_fsdp_", ".bin"))
      found.model = true;
  found.deepspeed = !deepspeed_directories(directory).empty();
  return found;
}

BackendFiles add_backend_files(Assembly& assembly) {
  const Source& directory = assembly.directory();
  const BackendFiles found = find_backend_files(directory);
  for (const Part& part : kParts) {
    for (const auto& [number, name] : dcp_directories(directory, part)) {
      Role role = numbered_role(part, number);
      // The state's own root is the component's name; only what comes second needs one in front.
      if (number == 0) role = {};
      assembly.add(name, role);
    }
    for (const auto& [prefix, files] : rank_sets(directory, part))
      add_rank_set(assembly, part, prefix, files);
  }
  for (const std::string& name : top_files(directory)) {
    if (name == "pytorch_model_fsdp.bin") assembly.add(name, numbered_role(kParts[0], 0));
    if (const auto number = number_between(name, "pytorch_model_fsdp_", ".bin"))
      assembly.add(name, numbered_role(kParts[0], *number));
  }
  if (found.deepspeed) add_deepspeed(assembly, deepspeed_directories(directory));
  return found;
}

}  // namespace ckptverify
