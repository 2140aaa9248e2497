// What a PyTorch state is for, from the shape of its root object; and which of its tensors are one.
#include <algorithm>
#include <functional>
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

using Keys = std::set<std::string, std::less<>>;

/// The root's own keys: of a dictionary, of a LibTorch module, of a list none.
Keys keys_of(const PickleNode& root) {
  Keys keys;
  const auto add = [&](const PickleNode& dict) {
    for (const auto& [key, value] : dict.pairs()) {
      if (const auto text = key->string()) keys.insert(std::string(*text));
    }
  };
  add(root);
  const bool mapping = root.kind == PickleKind::kDict || !root.pairs().empty();
  if (!mapping) {
    for (const PickleNode* state : root.states()) add(*state);
  }
  return keys;
}

bool has_all(const Keys& keys, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](std::string_view key) { return keys.contains(key); });
}

bool has_only(const Keys& keys, std::initializer_list<std::string_view> allowed) {
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
  // An object of a foreign class without tensors holds settings: arguments of a trainer.
  const bool tensors = std::any_of(entries.begin(), entries.end(), holds_tensor);
  const bool opaque = !entries.empty() && entries[0].path.empty() &&
                      std::holds_alternative<Opaque>(entries[0].node);
  if (opaque && !tensors) return Component::kConfig;
  if (has_all(keys, {"state", "param_groups"})) return Component::kOptimizer;
  if (has_all(keys, {"last_epoch", "_step_count"})) return Component::kScheduler;
  if (has_all(keys, {"growth_factor", "growth_interval", "scale"})) return Component::kScaler;
  if (has_only(keys, {"python", "numpy", "cpu", "cuda", "xpu", "npu", "torch"})) {
    return Component::kRng;
  }
  const bool tensors_alone = std::all_of(entries.begin(), entries.end(), holds_tensor);
  const bool script = callee(root).starts_with("__torch__");
  bool model = false;    // some key is a model's
  bool other = false;    // some key is another component's
  bool unknown = false;  // some key that is no component is a tensor
  bool nested = false;   // some key that is no component holds tensors
  bool leaves = true;    // keys of other components are tensors themselves
  for (const Entry& entry : entries) {
    const std::string_view first = std::string_view(entry.path).substr(0, entry.path.find('.'));
    const Component component = component_of_key(first);
    // A flat state dict may begin all its keys with "model.": that is no key of its own.
    if (component == Component::kModel && keys.contains(first)) model = true;
    if (component != Component::kModel && component != Component::kOther) {
      other = true;
      leaves = leaves && entry.path == first;
    }
    if (component == Component::kOther && holds_tensor(entry)) {
      (entry.path == first ? unknown : nested) = true;
    }
  }
  // A parameter may be called "step"; a state that has one beside others is still a state dict.
  if (other) {
    return tensors_alone && (unknown || nested) && leaves ? std::optional(Component::kModel)
                                                          : std::nullopt;
  }
  if (model) return nested ? std::optional(Component::kModel) : std::nullopt;
  if (!keys.empty() && tensors && (tensors_alone || script)) return Component::kModel;
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
