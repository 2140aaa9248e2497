// Source: megatron/training/checkpointing.py (generate_state_dict, get_checkpoint_name),
// megatron/core/dist_checkpointing/mapping.py (ShardedObject.unique_key).
#include "formats/container/megatron_states.h"

#include <algorithm>
#include <array>

#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

constexpr std::string_view kOther = "megatron.";
constexpr std::string_view kShard = "/shard_";
constexpr std::string_view kCommon = "common_state";

struct KeyRow {
  std::string_view key;
  Component component;
  bool stripped = false;  // the key is the component itself
};

constexpr std::array kKeys = {
    KeyRow{"model", Component::kModel, true},
    KeyRow{"optimizer", Component::kOptimizer, true},
    KeyRow{"opt_param_scheduler", Component::kScheduler, true},
    KeyRow{"lr_scheduler", Component::kScheduler, true},
    KeyRow{"num_floating_point_operations_so_far", Component::kStep},
    KeyRow{"content_metadata", Component::kOther},
};

Placement placement(Component component, const MegatronPlace& place, std::string_view rest) {
  const bool own = component == Component::kModel || component == Component::kOptimizer ||
                   component == Component::kRng || component == Component::kScaler;
  if (component == Component::kOther) return {std::string(kOther) + std::string(rest)};
  std::string root = std::string(component_name(component)) + ".";
  Placement out{.path = {}, .component = component};
  if (own && place.rank) {
    root += place.label + ".";
    out.rank = place.rank;
  }
  out.root_size = root.size();
  out.path = root + std::string(rest);
  return out;
}

bool is_model_key(std::string_view key) {
  return key.starts_with("model") && key.find_first_not_of("0123456789", 5) == key.npos;
}

}  // namespace

std::optional<MegatronRank> megatron_rank(std::string_view directory_name) {
  constexpr std::string_view kPrefix = "mp_rank_";
  constexpr std::size_t kNumbersMax = 3;
  if (!directory_name.starts_with(kPrefix)) return std::nullopt;
  MegatronRank rank{.name = std::string(directory_name), .numbers = {}};
  std::string_view rest = directory_name.substr(kPrefix.size());
  for (;;) {
    const std::size_t end = std::min(rest.find('_'), rest.size());
    const auto number = number_between(rest.substr(0, end), "", "");
    if (!number || *number > UINT32_MAX || rank.numbers.size() == kNumbersMax) return std::nullopt;
    rank.numbers.push_back(static_cast<std::uint32_t>(*number));
    if (end == rest.size()) return rank;
    rest.remove_prefix(end + 1);
  }
}

Placement megatron_placement(std::string_view path, const MegatronPlace& place) {
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  const std::string_view rest = dot == path.npos ? std::string_view() : path.substr(dot + 1);
  if (key == "optimizer" && rest.starts_with("grad_scaler"))
    return placement(Component::kScaler, place, rest);
  for (const KeyRow& row : kKeys)
    if (row.key == key)
      return placement(row.component, place, row.stripped && !rest.empty() ? rest : path);
  // model0, model1: the stages of an interleaved pipeline.
  if (is_model_key(key)) return placement(Component::kModel, place, path);
  return placement(component_of_key(key), place, path);
}

Placement megatron_shard_placement(std::string_view path) {
  std::string name(path);
  const std::size_t shard = name.find(kShard);
  std::string base = name.substr(0, shard);
  if (base == kCommon) {
    const std::size_t dot = name.find('.', name.find_last_of('/'));
    // What stands in the object, not the object itself.
    if (dot != name.npos) return megatron_placement(std::string_view(name).substr(dot + 1), {});
  }
  if (shard != name.npos) name[shard] = '.';
  if (base.starts_with("chained_")) {
    const std::size_t dot = base.find('.');
    if (dot != base.npos && base.compare(dot + 1, 9, "optimizer") == 0)
      return placement(Component::kOptimizer, {}, name);
  }
  if (base == "optimizer" || base.starts_with("optimizer.")) return megatron_placement(name, {});
  if (base == "rng_state") return placement(Component::kRng, {}, name);
  const Component component = component_of_key(base.substr(0, base.find('.')));
  if (component == Component::kOther || component == Component::kModel)
    return base.starts_with("rerun_state_machine") ? Placement{std::string(kOther) + name}
           : component == Component::kModel        ? megatron_placement(name, {})
                                                   : placement(Component::kModel, {}, name);
  return placement(component, {}, name);
}

std::optional<std::uint64_t> megatron_iteration(std::string_view directory_name) {
  return number_between(directory_name, "iter_", "");
}

}  // namespace ckptverify
