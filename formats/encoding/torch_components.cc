// What a PyTorch state is for, from the shape of its root object; and which of its tensors are one.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <variant>

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {
namespace {

bool holds_tensor(const Entry& entry) {
  return std::holds_alternative<Tensor>(entry.node) ||
         std::holds_alternative<std::shared_ptr<const Composite>>(entry.node);
}

/// The root's own keys: of a dictionary, of a LibTorch module, of a list none.
std::set<std::string> keys_of(const PickleNode& root) {
  std::set<std::string> keys;
  const auto add = [&](const PickleNode& dict) {
    for (const auto& [key, value] : dict.pairs) {
      if (key->string() != nullptr) keys.insert(*key->string());
    }
  };
  add(root);
  const bool mapping = root.kind == PickleKind::kDict || !root.pairs.empty();
  if (!mapping) {
    for (const PickleNode* state : root.states) add(*state);
  }
  return keys;
}

bool has_all(const std::set<std::string>& keys, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](std::string_view key) { return keys.contains(std::string(key)); });
}

bool has_only(const std::set<std::string>& keys, std::initializer_list<std::string_view> allowed) {
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return std::find(allowed.begin(), allowed.end(), key) != allowed.end();
  });
}

/// The one component that the whole object is, or none where its keys are components.
std::optional<Component> whole_component(const PickleNode& root,
                                         const std::vector<Entry>& entries) {
  const auto keys = keys_of(root);
  const bool object = root.kind == PickleKind::kObject || root.kind == PickleKind::kCall;
  if (object && has_all(keys, {"_parameters", "_modules"})) return Component::kModel;
  if (has_all(keys, {"state", "param_groups"})) return Component::kOptimizer;
  if (has_all(keys, {"last_epoch", "_step_count"})) return Component::kScheduler;
  if (has_all(keys, {"growth_factor", "growth_interval", "scale"})) return Component::kScaler;
  const bool tensors_alone = std::all_of(entries.begin(), entries.end(), holds_tensor);
  if (!tensors_alone && has_only(keys, {"python", "numpy", "cpu", "cuda", "xpu", "npu", "torch"})) {
    return Component::kRng;
  }
  bool model = false;    // some key is a model's
  bool other = false;    // some key is another component's
  bool unknown = false;  // some key that is no component holds tensors
  for (const Entry& entry : entries) {
    const std::string first = entry.path.substr(0, entry.path.find('.'));
    const Component component = component_of_key(first);
    // A flat state dict may begin all its keys with "model.": that is no key of its own.
    if (component == Component::kModel && keys.contains(first)) model = true;
    if (component != Component::kModel && component != Component::kOther) other = true;
    if (component == Component::kOther && holds_tensor(entry)) unknown = true;
  }
  if (other) return std::nullopt;
  if (model) return unknown ? std::optional(Component::kModel) : std::nullopt;
  const bool script = callee(root).starts_with("__torch__");
  const bool any_tensor = std::any_of(entries.begin(), entries.end(), holds_tensor);
  if (!keys.empty() && any_tensor && (tensors_alone || script)) return Component::kModel;
  return std::nullopt;
}

}  // namespace

void assign_torch_components(const PickleNode& root, std::vector<Entry>& entries) {
  const auto whole = whole_component(root, entries);
  if (!whole) {
    assign_components(entries);
    return;
  }
  for (Entry& entry : entries) {
    entry.component = *whole;
    entry.root_size = 0;
  }
}

void find_aliases(std::vector<Entry>& entries) {
  using Elements = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, DType,
                              std::vector<std::uint64_t>, std::vector<std::int64_t>, bool, bool>;
  std::map<Elements, std::string_view> first;
  for (Entry& entry : entries) {
    const auto* tensor = std::get_if<Tensor>(&entry.node);
    if (tensor == nullptr || tensor->pieces.size() != 1 || logical_size(*tensor) == 0) continue;
    const Piece& piece = tensor->pieces[0];
    if (piece.run.owned != nullptr) continue;
    const auto [known, added] =
        first.emplace(Elements{piece.run.file, piece.run.offset, piece.first_element, tensor->dtype,
                               tensor->shape, piece.strides, tensor->conjugate, tensor->negative},
                      entry.path);
    if (!added) entry.alias_of = known->second;
  }
}

}  // namespace ckptverify
