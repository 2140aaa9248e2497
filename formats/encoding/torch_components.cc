// What a PyTorch state is for, from the shape of its root object; and which of its tensors are one.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <variant>

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/state_components.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {
namespace {

bool holds_tensor(const Entry& entry) {
  return std::holds_alternative<Tensor>(entry.node) ||
         std::holds_alternative<std::shared_ptr<const Composite>>(entry.node);
}

/// The root's own keys: of a dictionary, of a LibTorch module, of a list none.
GroupNames keys_of(const PickleNode& root) {
  GroupNames keys;
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

bool has_all(const GroupNames& keys, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](std::string_view key) { return keys.contains(key); });
}

bool has_only(const GroupNames& keys, std::initializer_list<std::string_view> allowed) {
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return std::find(allowed.begin(), allowed.end(), key) != allowed.end();
  });
}

/// The one component that the whole object is, or none where its keys tell.
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
  // A module of TorchScript; of a state that has components it is not the whole.
  const bool known = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return component_of_key(entry.path.substr(0, entry.path.find('.'))) != Component::kOther;
  });
  if (!keys.empty() && tensors && !known && callee(root).starts_with("__torch__"))
    return Component::kModel;
  return std::nullopt;
}

}  // namespace

void assign_torch_components(const PickleNode& root, std::vector<Entry>& entries) {
  const auto whole = whole_component(root, entries);
  if (!whole) {
    const GroupNames keys = keys_of(root);
    return keys.empty() ? assign_components(entries) : assign_state_components(entries, keys);
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
