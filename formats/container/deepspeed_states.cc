// Source: deepspeed/runtime/engine.py (_common_checkpoint_state, _save_zero_checkpoint),
// zero/stage_1_and_2.py and zero/stage3.py (state_dict), bf16_optimizer.py (state_dict).
#include "formats/container/deepspeed_states.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "formats/container/deepspeed_partitions.h"
#include "formats/container/generation.h"

namespace ckptverify {
namespace {

constexpr std::string_view kOther = "deepspeed.";
constexpr std::string_view kOptimizerState = "optimizer_state_dict.";

/// "a" and "b.c" of "a.b.c".
std::pair<std::string_view, std::string_view> split_first(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return {path, {}};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

std::optional<std::uint32_t> whole(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_null(const Node& node) {
  const auto* value = std::get_if<Value>(&node);
  return value != nullptr && std::holds_alternative<Null>(*value);
}

Placement placed(Component component, const DeepspeedPlace& place, std::string_view rest) {
  const std::string root = deepspeed_root(component, place);
  return {root + std::string(rest), component, deepspeed_rank(component, place), root.size()};
}

bool move_to(Entry& entry, const Placement& target, const DeepspeedPlace& place) {
  return place.said->place(
      entry, target, std::string(kOther) + "rank_" + std::to_string(place.file.data_rank) + ".");
}

Placement place_of_model_entry(const std::string& path, const DeepspeedPlace& place) {
  const auto [key, rest] = split_first(path);
  if (place.file.kind == DeepspeedKind::kLayer)
    return placed(Component::kModel, place, place.file.part + "." + path);
  if (place.file.kind == DeepspeedKind::kExpert) return placed(Component::kModel, place, path);
  if (!rest.empty()) {
    if (key == "module") return placed(Component::kModel, place, rest);
    if (key == "optimizer") return placed(Component::kOptimizer, place, rest);
    if (key == "lr_scheduler") return placed(Component::kScheduler, place, rest);
  }
  Component component = component_of_key(key);
  if (key == "skipped_steps" || key == "global_samples") component = Component::kStep;
  if (component == Component::kOther) return {std::string(kOther) + path};
  return placed(component, place, path);
}

struct VectorName {
  std::string key;  // "fp32", "exp_avg"
  std::uint32_t group = 0;
};

/// The group's element of the optimizer's own state: "state.0.exp_avg", or "0.exp_avg" where the
/// checkpoint was made to be elastic.
std::optional<VectorName> state_name(std::string_view rest) {
  auto [first, after] = split_first(rest);
  if (first == "state") std::tie(first, after) = split_first(after);
  const auto group = whole(first);
  if (!group || after.empty() || after.find('.') != std::string_view::npos) return std::nullopt;
  return VectorName{std::string(after), *group};
}

std::optional<VectorName> vector_name(std::string_view path, bool& parameters_too) {
  const auto [key, rest] = split_first(path);
  if (key == "fp32_flat_groups") parameters_too = true;
  if (key == "fp32_flat_groups" || key == "single_partition_of_fp32_groups") {
    const auto group = whole(rest);
    if (!group) return std::nullopt;
    return VectorName{"fp32", *group};
  }
  if (key == "base_optimizer_state" || key == "optimizer_state_dict") return state_name(rest);
  return std::nullopt;
}

Placement place_of_optimizer_entry(std::string_view path, const DeepspeedPlace& place) {
  const auto [key, rest] = split_first(path);
  if (key == "loss_scaler" || key == "dynamic_loss_scale" || key == "overflow")
    return placed(Component::kScaler, place, path);
  const bool state = key == "base_optimizer_state" || key == "optimizer_state_dict";
  // Numbers of the flat vectors, which are a matter of layout.
  const bool numbers = rest.find(".params.") != std::string_view::npos;
  if (state && !numbers) return placed(Component::kOptimizer, place, rest);
  if (key == "clip_grad") return placed(Component::kOptimizer, place, path);
  return {std::string(kOther) + std::string(path)};
}

}  // namespace

DeepspeedWorld deepspeed_world(const Checkpoint& part) {
  return {.data_ranks = whole_number(part, "dp_world_size"),
          .model_ranks = whole_number(part, "mp_world_size"),
          .steps = whole_number(part, "global_steps")};
}

std::optional<std::int64_t> deepspeed_partition_count(const Checkpoint& part) {
  constexpr std::string_view kPath = "optimizer_state_dict.partition_count";
  if (const auto count = whole_number(part, kPath)) return count;
  std::optional<std::int64_t> most;
  for (const Entry& entry : part.entries)
    if (entry.path.starts_with(kPath)) most = std::max(most, whole_number(part, entry.path));
  return most;
}

std::string deepspeed_root(Component component, const DeepspeedPlace& place) {
  std::string root = std::string(component_name(component)) + ".";
  if (const auto rank = deepspeed_rank(component, place)) root += std::to_string(*rank) + ".";
  return root;
}

std::optional<std::uint32_t> deepspeed_rank(Component component, const DeepspeedPlace& place) {
  if (component == Component::kRng && place.file.per_data_rank) return place.file.data_rank;
  const bool per_model = component == Component::kModel || component == Component::kOptimizer ||
                         component == Component::kRng || component == Component::kScaler;
  if (per_model && place.several_models) return place.file.model_rank;
  return std::nullopt;
}

std::map<std::string, Tensor> place_model_states(Checkpoint& part, const DeepspeedPlace& place) {
  constexpr std::string_view kFragments = "frozen_param_fragments.";
  std::map<std::string, Tensor> fragments;
  std::vector<Entry> kept;
  for (Entry& entry : part.entries) {
    const auto* tensor = std::get_if<Tensor>(&entry.node);
    const auto [key, rest] = split_first(entry.path);
    if (entry.path.starts_with(kFragments) && tensor != nullptr) {
      fragments.emplace(entry.path.substr(kFragments.size()), *tensor);
      continue;
    }
    // An absent optimizer or scheduler; where a parameter is partitioned, nothing stands for it.
    if (rest.empty() && is_null(entry.node)) continue;
    if (key == "module" && tensor != nullptr && place.file.per_data_rank &&
        tensor->shape == std::vector<std::uint64_t>{0})
      continue;
    entry.alias_of.clear();
    const Placement target = place_of_model_entry(entry.path, place);
    if (move_to(entry, target, place)) kept.push_back(std::move(entry));
  }
  part.entries = std::move(kept);
  return fragments;
}

DeepspeedFlats place_optimizer_states(Checkpoint& part, const DeepspeedPlace& place) {
  DeepspeedFlats flats;
  std::vector<Entry> kept;
  for (Entry& entry : part.entries) {
    entry.alias_of.clear();
    if (!entry.path.starts_with(kOptimizerState)) {
      const auto [key, rest] = split_first(entry.path);
      const Component component = component_of_key(key);
      const Placement target = component == Component::kConfig
                                   ? placed(component, place, entry.path)
                               : place.file.kind == DeepspeedKind::kExpertOptimizer && !rest.empty()
                                   ? placed(Component::kOptimizer, place, rest)
                                   : Placement{std::string(kOther) + entry.path};
      if (move_to(entry, target, place)) kept.push_back(std::move(entry));
      continue;
    }
    const std::string_view rest = std::string_view(entry.path).substr(kOptimizerState.size());
    if (const auto name = vector_name(rest, flats.parameters_too)) {
      const auto* tensor = std::get_if<Tensor>(&entry.node);
      if (tensor != nullptr && is_flat(*tensor))
        flats.vectors[name->key].emplace(name->group, *tensor);
      else
        flats.scalars[name->key].emplace(name->group, std::move(entry.node));
      continue;
    }
    const Placement target = place_of_optimizer_entry(rest, place);
    if (move_to(entry, target, place)) kept.push_back(std::move(entry));
  }
  part.entries = std::move(kept);
  return flats;
}

}  // namespace ckptverify
