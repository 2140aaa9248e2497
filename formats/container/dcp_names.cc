// The conventions: {"model": ..., "optimizer": ...} by the keys; a bare state dict is a model,
// {"state", "param_groups"} an optimizer; torchtitan keeps the model's names at the top, beside the
// others' keys.
#include "formats/container/dcp_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "formats/encoding/state_components.h"

namespace ckptverify {
namespace {

bool is_tensor(const Entry& entry) {
  return std::holds_alternative<Tensor>(entry.node) ||
         std::holds_alternative<std::shared_ptr<const Composite>>(entry.node);
}

/// What a module keeps besides tensors is an object of its own.
bool is_extra_state(const Entry& entry) {
  return entry.path.find("_extra_state") != std::string::npos;
}

std::optional<std::uint32_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  std::uint32_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> rank_of_key(std::string_view key) {
  for (const std::string_view prefix : {"dp_rank_", "rank_", "rank", "rank-"})
    if (const auto rank = number_after(key, prefix)) return rank;
  return std::nullopt;
}

/// "rng_state_3": each rank has its own.
std::optional<std::uint32_t> rank_of_top(std::string_view top) {
  for (const std::string_view prefix : {"rng_state_", "rng_rank_", "rng_", "rng_states_"})
    if (const auto rank = number_after(top, prefix)) return rank;
  return std::nullopt;
}

void place(Entry& entry, const DcpKeys& keys, Component component) {
  entry.component = component;
  const auto add_root = [&entry](const std::string& key) {
    const std::size_t size = entry.root_size + key.size() + 1;
    if (size >= entry.path.size() || entry.path[size - 1] != '.') return false;
    if (entry.path.compare(entry.root_size, key.size(), key) != 0) return false;
    entry.root_size = size;
    return true;
  };
  entry.root_size = 0;
  if (keys.empty() || component == Component::kOther) return;
  if (!entry.rank && component == Component::kRng) entry.rank = rank_of_top(keys[0]);
  if (!add_root(keys[0]) || keys.size() < 2) return;
  const bool ranked = component == Component::kRng || component == Component::kDataCursor;
  const auto rank = ranked && !entry.rank ? rank_of_key(keys[1]) : std::nullopt;
  if (rank) {
    entry.rank = rank;
    add_root(keys[1]);
  } else if (entry.rank) {
    add_root(std::to_string(*entry.rank));
  }
}

/// Names that no planner parted: the rule of all flat states, and the ranks of random states.
void assign_flat_names(std::vector<Entry>& entries, const std::vector<const DcpKeys*>& keys) {
  assign_state_components(entries, {});
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (!entries[i].rank && entries[i].component == Component::kRng)
      entries[i].rank = rank_of_top(keys[i]->front());
}

}  // namespace

DcpKeys dcp_keys_of_path(const std::string& path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return {path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

void assign_dcp_components(std::vector<Entry>& entries, const std::vector<const DcpKeys*>& keys) {
  std::set<std::string_view> tops;
  bool any_known = false;        // a top key is a component's
  bool any_model = false;        // and one is the model's
  bool tensors_alone = true;     // besides modules' extra states
  bool flat = !entries.empty();  // no nesting at all
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& top = keys[i]->front();
    tops.insert(top);
    const Component component = component_of_key(top);
    any_known = any_known || component != Component::kOther;
    any_model = any_model || (component == Component::kModel && keys[i]->size() > 1);
    tensors_alone = tensors_alone && (is_tensor(entries[i]) || is_extra_state(entries[i]));
    flat = flat && keys[i]->size() == 1;
  }
  if (flat) return assign_flat_names(entries, keys);
  std::optional<Component> whole;
  if (tops.contains("state") && tops.contains("param_groups")) whole = Component::kOptimizer;
  if (!whole && tensors_alone && !any_known) whole = Component::kModel;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (whole) {
      entries[i].component = *whole;
      entries[i].root_size = 0;
      continue;
    }
    Component component = component_of_key(keys[i]->front());
    place(entries[i], *keys[i], component);
    const bool parameter = is_tensor(entries[i]) || is_extra_state(entries[i]);
    if (component == Component::kOther && !any_model && any_known && parameter)
      entries[i].component = Component::kModel;
  }
}

}  // namespace ckptverify
