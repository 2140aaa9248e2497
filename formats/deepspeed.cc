// DeepSpeed.
//
//   save_dir/
//     latest                                         the tag's name, written last
//     global_step100/                                a tag
//       mp_rank_00_model_states.pt                   module, scheduler, steps; ZeRO 0 to 2
//       zero_pp_rank_0_mp_rank_00_model_states.pt    the same of each data rank; ZeRO 3
//       [bf16_]zero_pp_rank_0_mp_rank_00_optim_states.pt    flat partitions of each data rank
//       layer_03-model_00-model_states.pt            a pipeline's layers
//       layer_1_expert_0_mp_rank_00_model_states.pt, expp_rank_0_mp_rank_00_optim_states.pt
//     zero_to_fp32.py
#include "formats/deepspeed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/count_text.h"
#include "formats/container/assembly.h"
#include "formats/container/deepspeed_latest.h"
#include "formats/container/deepspeed_layout.h"
#include "formats/container/deepspeed_names.h"
#include "formats/container/deepspeed_partitions.h"
#include "formats/container/deepspeed_states.h"
#include "formats/container/generation.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {
namespace {

constexpr std::string_view kScript = "zero_to_fp32.py";
constexpr std::string_view kWeights = "fp32";
// Missing files that are named one by one.
constexpr std::uint64_t kMissingShownMax = 16;
// No run has had a million processes; a claim beyond it is damage, and not walked through.
constexpr std::int64_t kRanksMax = 1 << 20;

/// What has been read of one rank of model parallelism.
struct ModelRank {
  std::optional<DeepspeedLayout> layout;
  DeepspeedWorld world;
  std::set<std::uint32_t> model_files;  // data ranks
  bool model_per_data_rank = false;
  std::map<std::uint32_t, std::map<std::string, Tensor>> fragments;  // by data rank
  std::map<std::uint32_t, DeepspeedFlats> flats;                     // by data rank
  std::map<std::uint32_t, std::string> optimizer_files;
  std::optional<std::int64_t> partition_count;
  SaidOnce said;
};

class TagReader {
 public:
  TagReader(const Source& directory, const FormatTable& table)
      : assembly_("deepspeed", directory, table), files_(deepspeed_files(directory)) {}
  Checkpoint read() &&;

 private:
  DeepspeedPlace place_of(const DeepspeedFile& file) {
    return {.file = file, .several_models = several_models_, .said = &ranks_[file.model_rank].said};
  }
  void add_model(const DeepspeedFile& file);
  void add_optimizer(const DeepspeedFile& file);
  void check_steps(const DeepspeedFile& file, const DeepspeedWorld& world);
  void check_model_ranks();
  void check_data_ranks(std::uint32_t model_rank, ModelRank& rank);
  bool check_optimizers(std::uint32_t model_rank, ModelRank& rank, std::int64_t expected);
  void missing(const std::string& what, std::uint64_t rank, std::uint64_t expected,
               const std::string& file);
  bool join(std::uint32_t model_rank, ModelRank& rank);
  Result<void> join_states(std::uint32_t model_rank, const ModelRank& rank);
  Result<void> join_key(const std::string& key, std::uint32_t model_rank, const ModelRank& rank);
  Result<void> join_frozen(std::uint32_t model_rank, const ModelRank& rank);
  void add_scalars(std::uint32_t model_rank, const ModelRank& rank);
  void keep_partitions(std::uint32_t model_rank, const ModelRank& rank);
  void add_entry(Component component, std::uint32_t model_rank, const std::string& rest, Node node,
                 std::string alias_of = {});
  /// Experts are partitioned over other ranks than the rest; who holds what, no file says.
  bool has_experts() const {
    return std::any_of(files_.begin(), files_.end(), [](const DeepspeedFile& file) {
      return file.kind == DeepspeedKind::kExpert;
    });
  }
  std::string root(Component component, std::uint32_t model_rank) {
    return deepspeed_root(component,
                          {.file = {.model_rank = model_rank}, .several_models = several_models_});
  }

  Assembly assembly_;
  std::vector<DeepspeedFile> files_;
  std::map<std::uint32_t, ModelRank> ranks_;
  std::map<std::string, std::uint64_t> missing_;  // by what is missing
  bool several_models_ = false;
};

void TagReader::add_entry(Component component, std::uint32_t model_rank, const std::string& rest,
                          Node node, std::string alias_of) {
  const std::string before = root(component, model_rank);
  Entry entry{.path = before + rest, .node = std::move(node), .component = component};
  if (several_models_) entry.rank = model_rank;
  entry.root_size = before.size();
  entry.alias_of = std::move(alias_of);
  assembly_.checkpoint().entries.push_back(std::move(entry));
}

void TagReader::missing(const std::string& what, std::uint64_t rank, std::uint64_t expected,
                        const std::string& file) {
  if (++missing_[what] > kMissingShownMax) return;
  assembly_.fail(CauseKind::kShardMissing, assembly_.directory().name(),
                 what + " " + std::to_string(rank) + " is not there; expected " +
                     count_text(expected, "rank") + " and " + file);
}

/// All files of a save count the same steps.
void TagReader::check_steps(const DeepspeedFile& file, const DeepspeedWorld& world) {
  for (const auto& [number, rank] : ranks_) {
    if (!rank.world.steps || !world.steps || rank.world.steps == world.steps) continue;
    mixed_steps(assembly_.checkpoint(), Status::kFail, file.name,
                "is of another save; found global_steps " + std::to_string(*world.steps) +
                    ", expected " + std::to_string(*rank.world.steps),
                {});
    return;
  }
}

void TagReader::add_model(const DeepspeedFile& file) {
  ModelRank& rank = ranks_[file.model_rank];
  auto part = assembly_.read(file.name);
  if (file.kind == DeepspeedKind::kModel) {
    rank.model_files.insert(file.data_rank);
    rank.model_per_data_rank |= file.per_data_rank;
  }
  if (!part) return;
  if (file.kind == DeepspeedKind::kModel) {
    const DeepspeedWorld world = deepspeed_world(*part);
    check_steps(file, world);
    if (!rank.layout) {
      rank.world = world;
      const auto source = assembly_.directory().member(file.name);
      auto layout =
          source ? read_deepspeed_layout(*source) : Result<DeepspeedLayout>(source.error());
      if (layout)
        rank.layout = *std::move(layout);
      else if (layout.error().kind == ErrorKind::kUnsupported)
        assembly_.checkpoint().uninterpreted.push_back(file.name + ": " + layout.error().message);
      else
        assembly_.note(std::move(layout).error().about(file.name));
    }
  }
  const auto first_file = static_cast<std::uint32_t>(assembly_.checkpoint().files.size());
  for (auto& [name, tensor] : place_model_states(*part, place_of(file)))
    rank.fragments[file.data_rank].emplace(
        name, std::get<Tensor>(shifted(std::move(tensor), first_file)));
  assembly_.absorb(*std::move(part), {});
}

void TagReader::add_optimizer(const DeepspeedFile& file) {
  ModelRank& rank = ranks_[file.model_rank];
  auto part = assembly_.read(file.name);
  if (file.kind == DeepspeedKind::kOptimizer) {
    const auto [known, added] = rank.optimizer_files.emplace(file.data_rank, file.name);
    if (!added) {
      assembly_.fail(CauseKind::kUncommitted, file.name,
                     "is a second file of one rank; the other is " + known->second);
      if (part) part->entries.clear();
    }
  }
  if (!part) return;
  rank.partition_count = std::max(rank.partition_count, deepspeed_partition_count(*part));
  const auto first_file = static_cast<std::uint32_t>(assembly_.checkpoint().files.size());
  DeepspeedFlats flats = place_optimizer_states(*part, place_of(file));
  for (auto& [key, groups] : flats.vectors)
    for (auto& [group, tensor] : groups)
      tensor = std::get<Tensor>(shifted(Node(std::move(tensor)), first_file));
  for (auto& [key, groups] : flats.scalars)
    for (auto& [group, node] : groups) node = shifted(std::move(node), first_file);
  if (file.kind == DeepspeedKind::kOptimizer) rank.flats.emplace(file.data_rank, std::move(flats));
  assembly_.absorb(*std::move(part), {});
}

void TagReader::check_model_ranks() {
  std::int64_t expected = 1;
  for (const auto& [number, rank] : ranks_)
    expected = std::max(expected, rank.world.model_ranks.value_or(1));
  for (std::int64_t number = 0; number < std::min(expected, kRanksMax); ++number) {
    const auto wanted = static_cast<std::uint32_t>(number);
    if (!ranks_.contains(wanted) || ranks_[wanted].model_files.empty())
      missing("the state of model rank", wanted, static_cast<std::uint64_t>(expected),
              deepspeed_sibling(files_, DeepspeedKind::kModel, 0, wanted));
  }
}

/// False where the ranks' partitions do not make a whole.
bool TagReader::check_optimizers(std::uint32_t model_rank, ModelRank& rank, std::int64_t expected) {
  const std::string what =
      "the optimizer's partition of model rank " + std::to_string(model_rank) + ", data rank";
  bool complete = true;
  for (std::int64_t number = 0; number < std::min(expected, kRanksMax); ++number) {
    const auto wanted = static_cast<std::uint32_t>(number);
    complete &= rank.flats.contains(wanted);
    if (rank.optimizer_files.contains(wanted)) continue;
    missing(what, wanted, static_cast<std::uint64_t>(expected),
            deepspeed_sibling(files_, DeepspeedKind::kOptimizer, wanted, model_rank));
  }
  for (const auto& [number, name] : rank.optimizer_files) {
    if (number < expected) continue;
    assembly_.fail(CauseKind::kUncommitted, name,
                   "is left over from a save by more ranks; found rank " + std::to_string(number) +
                       ", expected less than " + std::to_string(expected));
    rank.flats.erase(number);
  }
  return complete && expected <= kRanksMax;
}

void TagReader::check_data_ranks(std::uint32_t model_rank, ModelRank& rank) {
  const std::int64_t data_ranks = rank.world.data_ranks.value_or(1);
  bool models_complete = true;
  if (rank.model_per_data_rank) {
    for (std::int64_t number = 0; number < std::min(data_ranks, kRanksMax); ++number) {
      if (rank.model_files.contains(static_cast<std::uint32_t>(number))) continue;
      models_complete = false;
      missing("the state of model rank " + std::to_string(model_rank) + ", data rank",
              static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(data_ranks),
              deepspeed_sibling(files_, DeepspeedKind::kModel, static_cast<std::uint64_t>(number),
                                model_rank));
    }
    for (const std::uint32_t number : rank.model_files)
      if (rank.world.data_ranks && number >= data_ranks)
        assembly_.fail(CauseKind::kUncommitted, assembly_.directory().name(),
                       "the model's state of data rank " + std::to_string(number) +
                           " is left over from a save by more ranks; expected " +
                           count_text(static_cast<std::uint64_t>(data_ranks), "rank"));
  }
  const bool partitioned = rank.layout && !rank.layout->groups.empty();
  if (!partitioned && rank.optimizer_files.empty()) return;
  // Where no file could be read that says how many ranks there are, their names do.
  const std::int64_t named =
      rank.optimizer_files.empty() ? 1 : std::int64_t{rank.optimizer_files.rbegin()->first} + 1;
  const std::int64_t expected =
      rank.partition_count.value_or(rank.world.data_ranks.value_or(named));
  const bool complete = check_optimizers(model_rank, rank, expected);
  if (!complete || !models_complete || has_experts() || !join(model_rank, rank))
    keep_partitions(model_rank, rank);
}

/// The first `count` elements: an optimizer's own vectors are padded, the weights are not.
Tensor narrowed(Tensor flat, std::uint64_t count) {
  flat.shape = {count};
  flat.pieces[0].shape = {count};
  return flat;
}

Result<void> TagReader::join_key(const std::string& key, std::uint32_t model_rank,
                                 const ModelRank& rank) {
  FlatGroups flats;
  for (const auto& [number, all] : rank.flats) {
    const auto groups = all.vectors.find(key);
    const auto weights = all.vectors.find(std::string(kWeights));
    auto& own = flats.emplace_back();
    for (std::uint32_t group = 0; group < rank.layout->groups.size(); ++group) {
      const bool there = groups != all.vectors.end() && groups->second.contains(group);
      if (!there || weights == all.vectors.end() || !weights->second.contains(group))
        return Error{.message = "data rank " + std::to_string(number) + " has no vector " + key +
                                " of group " + std::to_string(group),
                     .cause = Cause{CauseKind::kShardMissing, {}}};
      const Tensor& flat = groups->second.at(group);
      const std::uint64_t size = weights->second.at(group).shape[0];
      own.push_back(flat.shape[0] > size ? narrowed(flat, size) : flat);
    }
  }
  const bool parameters = !rank.flats.empty() && rank.flats.begin()->second.parameters_too;
  CKPTVERIFY_TRY(NamedTensors joined,
                 join_partitions(parameters ? ZeroStage::kParameters : ZeroStage::kOptimizer, flats,
                                 *rank.layout));
  std::map<std::string, const Tensor*> by_name;
  for (const auto& [name, tensor] : joined) {
    by_name.emplace(name, &tensor);
    // Stage 3 keeps no other copy of the weights.
    const std::string path = key + "." + name;
    if (key == kWeights && parameters) {
      add_entry(Component::kModel, model_rank, name, tensor);
      add_entry(Component::kOptimizer, model_rank, path, tensor,
                root(Component::kModel, model_rank) + name);
    } else {
      add_entry(Component::kOptimizer, model_rank, path, tensor);
    }
  }
  if (key != kWeights) return {};
  for (const auto& [alias, kept] : rank.layout->shared) {
    const auto known = by_name.find(kept);
    if (known == by_name.end() || by_name.contains(alias)) continue;
    const std::string before = root(Component::kOptimizer, model_rank) + key + ".";
    add_entry(Component::kOptimizer, model_rank, key + "." + alias, *known->second, before + kept);
    if (parameters)
      add_entry(Component::kModel, model_rank, alias, *known->second,
                root(Component::kModel, model_rank) + kept);
  }
  return {};
}

Result<void> TagReader::join_frozen(std::uint32_t model_rank, const ModelRank& rank) {
  // Without partitioned weights they are copies of what the module holds. One rank's file may have
  // been refused.
  if (!rank.model_per_data_rank || rank.fragments.size() < rank.model_files.size()) return {};
  for (const DeepspeedParameter& parameter : rank.layout->frozen) {
    std::vector<Tensor> fragments;
    for (const auto& [number, all] : rank.fragments)
      if (const auto own = all.find(parameter.name); own != all.end())
        fragments.push_back(own->second);
    CKPTVERIFY_TRY(Tensor tensor, join_fragments(parameter, fragments));
    add_entry(Component::kModel, model_rank, parameter.name, std::move(tensor));
  }
  return {};
}

/// "step" and the like, of which each flat vector has one: for each parameter in it.
void TagReader::add_scalars(std::uint32_t model_rank, const ModelRank& rank) {
  for (const auto& [key, groups] : rank.flats.begin()->second.scalars)
    for (const auto& [group, node] : groups) {
      if (group >= rank.layout->groups.size()) continue;
      for (const DeepspeedParameter& parameter : rank.layout->groups[group])
        add_entry(Component::kOptimizer, model_rank, key + "." + parameter.name, node);
    }
}

Result<void> TagReader::join_states(std::uint32_t model_rank, const ModelRank& rank) {
  for (const auto& [key, groups] : rank.flats.begin()->second.vectors)
    CKPTVERIFY_TRY_VOID(join_key(key, model_rank, rank));
  CKPTVERIFY_TRY_VOID(join_frozen(model_rank, rank));
  add_scalars(model_rank, rank);
  return {};
}

bool TagReader::join(std::uint32_t model_rank, ModelRank& rank) {
  if (!rank.layout || rank.layout->groups.empty() || rank.flats.empty()) return false;
  std::vector<Entry>& entries = assembly_.checkpoint().entries;
  const std::size_t before = entries.size();
  auto joined = join_states(model_rank, rank);
  if (joined) return true;
  entries.resize(before);
  assembly_.note(std::move(joined).error().about(assembly_.directory().name()));
  return false;
}

/// The partitions as they are, each under its rank.
void TagReader::keep_partitions(std::uint32_t model_rank, const ModelRank& rank) {
  for (const auto& [number, flats] : rank.flats) {
    const std::uint32_t data_rank = number;
    const std::string before =
        root(Component::kOptimizer, model_rank) + "rank_" + std::to_string(number) + ".";
    const auto keep = [&](const std::string& key, std::uint32_t group, const Node& node) {
      Entry entry{.path = before + key + "." + std::to_string(group),
                  .node = node,
                  .component = Component::kOptimizer,
                  .rank = data_rank,
                  .root_size = before.size()};
      assembly_.checkpoint().entries.push_back(std::move(entry));
    };
    for (const auto& [key, groups] : flats.vectors)
      for (const auto& [group, tensor] : groups) keep(key, group, tensor);
    for (const auto& [key, groups] : flats.scalars)
      for (const auto& [group, node] : groups) keep(key, group, node);
  }
}

Checkpoint TagReader::read() && {
  several_models_ = std::any_of(files_.begin(), files_.end(),
                                [](const DeepspeedFile& file) { return file.model_rank > 0; });
  for (const DeepspeedFile& file : files_) {
    const bool optimizer =
        file.kind == DeepspeedKind::kOptimizer || file.kind == DeepspeedKind::kExpertOptimizer;
    optimizer ? add_optimizer(file) : add_model(file);
  }
  if (std::any_of(assembly_.directory().members().begin(), assembly_.directory().members().end(),
                  [](const std::string& name) { return name.starts_with("offloaded_tensors/"); })) {
    assembly_.leave_out("offloaded_tensors");
    assembly_.checkpoint().uninterpreted.push_back(
        "offloaded_tensors: raw swap files of an optimizer on NVMe are not read");
  }
  for (const std::string_view script : {kScript, std::string_view("recovery.py")})
    if (assembly_.directory().has_member(script)) assembly_.add_accessory(std::string(script));
  check_model_ranks();
  for (auto& [number, rank] : ranks_) check_data_ranks(number, rank);
  Checkpoint checkpoint = std::move(assembly_).finish();
  find_aliases(checkpoint.entries);
  return checkpoint;
}

}  // namespace

bool sniff_deepspeed(const Source& source) {
  if (!source.is_directory()) return false;
  const auto& members = source.members();
  if (std::any_of(members.begin(), members.end(), [](const std::string& name) {
        return name.find('/') == std::string::npos && deepspeed_file(name).has_value();
      }))
    return true;
  return !deepspeed_tags(source).empty() ||
         (source.has_member(kDeepspeedLatest) && source.has_member(kScript));
}

Result<Checkpoint> read_deepspeed(const Source& source, const FormatTable& table) {
  if (!deepspeed_files(source).empty()) return TagReader(source, table).read();
  const DeepspeedChoice choice = choose_deepspeed_tag(source);
  Checkpoint checkpoint;
  checkpoint.format = "deepspeed";
  if (choice.tag) {
    CKPTVERIFY_TRY(const Source tag, source.subdirectory(*choice.tag));
    checkpoint = TagReader(tag, table).read();
  }
  checkpoint.findings.insert(checkpoint.findings.end(), choice.findings.begin(),
                             choice.findings.end());
  return checkpoint;
}

}  // namespace ckptverify
