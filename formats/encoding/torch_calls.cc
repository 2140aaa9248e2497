// Calls and objects: what PyTorch, NumPy and Python build their values with, classes that we know
// by name alone, modules, and tensors of classes of their own.
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "formats/encoding/numpy_objects.h"
#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/python_names.h"
#include "formats/encoding/torch_walk.h"

namespace ckptverify {
namespace {

Node composite(std::string kind, std::vector<std::pair<std::string, Node>> parts) {
  return std::make_shared<const Composite>(Composite{std::move(kind), std::move(parts)});
}

bool is_parameter_class(std::string_view name) {
  return name == "torch.nn.parameter.Parameter" || name == "torch.Tensor" ||
         name == "torch.nn.parameter.Buffer";
}

/// The class that an object is of, where a function of Python makes it.
std::string class_of(const PickleNode& node) {
  std::string name = callee(node);
  const PickleNode* first = argument(node, 0);
  if (first != nullptr && (name == "builtins.getattr" || name == "copyreg._reconstructor" ||
                           name == "copyreg.__newobj__")) {
    name = qualified_name(*first);
  }
  return name.empty() ? "computed class" : name;
}

}  // namespace

/// A class of which we know the name alone. Its attributes are listed as what they are; what its
/// constructor got and any other state only where tensors are in it.
Result<void> TorchWalk::visit_opaque(const PickleNode& node, const std::string& name, Keep keep) {
  CKPTVERIFY_TRY_VOID(emit(Opaque{name}, keep));
  for (const PickleNode* item : node.items().subspan(1)) {
    CKPTVERIFY_TRY_VOID(visit(*item, Keep::kTensors));
  }
  CKPTVERIFY_TRY_VOID(visit_pairs(node.pairs(), keep));
  const auto added = node.added();
  for (std::size_t i = 0; i < added.size(); ++i) {
    CKPTVERIFY_TRY_VOID(visit_at(std::to_string(i), *added[i], keep));
  }
  CKPTVERIFY_TRY_VOID(visit_states(node.states(), keep));
  if (!attribute_dicts(node.states()).empty()) return {};
  for (const PickleNode* state : node.states()) {
    CKPTVERIFY_TRY_VOID(visit(*state, Keep::kTensors));
  }
  return {};
}

/// A pickled nn.Module: parameters, buffers and submodules under the names of its state dict, and
/// its other attributes. Python's private ones only where they hold tensors.
Result<void> TorchWalk::visit_module(const PickleNode& node, Keep keep) {
  for (const PickleNode* dict : attribute_dicts(node.states())) {
    CKPTVERIFY_TRY_VOID(budget_.read_keys(dict->pairs()));
    for (const auto& [key, value] : dict->pairs()) {
      const std::string name = key_text(*key);
      if (name == "_parameters" || name == "_buffers" || name == "_modules") {
        CKPTVERIFY_TRY_VOID(budget_.read_keys(value->pairs()));
        for (const auto& [member, object] : value->pairs()) {
          if (object->is_none()) continue;  // a Linear without bias
          CKPTVERIFY_TRY_VOID(visit_at(key_text(*member), *object, keep));
        }
        continue;
      }
      CKPTVERIFY_TRY_VOID(visit_at(name, *value, name.starts_with('_') ? Keep::kTensors : keep));
    }
  }
  return {};
}

/// _rebuild_from_type_v2(function, class, arguments, state): a tensor of a class of its own. What
/// its function makes is one part, what its attributes hold are the others.
Result<void> TorchWalk::visit_subclass(const PickleNode& node, Keep keep) {
  const PickleNode* function = argument(node, 0);
  const PickleNode* type = argument(node, 1);
  const PickleNode* arguments = argument(node, 2);
  PickleNode* state = const_cast<PickleNode*>(argument(node, 3));
  if (state == nullptr) return visit_opaque(node, class_of(node), keep);
  const std::string name = qualified_name(*type);
  const TorchCall call{qualified_name(*function), arguments->items(), node.offset};
  std::vector<std::pair<std::string, Node>> parts;
  TorchWalk inner(context_, budget_);
  inner.open_ = open_;
  inner.repeated_keys_ = repeated_keys_;
  if (is_tensor_function(call.name)) {
    CKPTVERIFY_TRY(auto tensor, rebuild_tensor(call, context_));
    if (is_parameter_class(name)) {  // attributes of a plain tensor are no part of it
      CKPTVERIFY_TRY_VOID(emit(std::move(tensor), keep));
      return visit_states({&state, 1}, Keep::kTensors);
    }
    parts.emplace_back("tensor", std::move(tensor));
    CKPTVERIFY_TRY_VOID(inner.visit_tensor_state(name, *state));
  } else {
    // A nested tensor's attributes are what its function gets.
    for (const PickleNode* given : arguments->items()) {
      CKPTVERIFY_TRY_VOID(inner.visit(*given, Keep::kAll));
    }
    if (!name.ends_with(".NestedTensor")) {
      CKPTVERIFY_TRY_VOID(inner.visit_tensor_state(name, *state));
    }
  }
  if (name.ends_with(".DTensor") || name.ends_with(".ShardedTensor")) {
    local_shards_.push_back(path_);
  }
  take_parts(std::move(inner), parts);
  return emit(composite(name, std::move(parts)), keep);
}

/// The state of a tensor subclass, in the same shape as BUILD's, or what its __getstate__ made.
Result<void> TorchWalk::visit_tensor_state(std::string_view type, const PickleNode& state) {
  PickleNode* states[] = {const_cast<PickleNode*>(&state)};
  if (!attribute_dicts(states).empty()) return visit_states(states, Keep::kAll);
  if (state.kind != PickleKind::kTuple) return {};
  if (type.ends_with(".ShardedTensor")) return visit_shards(state.items());
  return visit_at("state", state, Keep::kAll);
}

void TorchWalk::take_parts(TorchWalk inner, std::vector<std::pair<std::string, Node>>& parts) {
  budget_ = inner.budget_;
  repeated_keys_ = inner.repeated_keys_;
  for (Entry& entry : inner.objects_.entries) {
    // Two parts of one name would have no order in the digest.
    const auto same = [&](const auto& other) { return other.first == entry.path; };
    while (std::any_of(parts.begin(), parts.end(), same)) entry.path += "#";
    parts.emplace_back(std::move(entry.path), std::move(entry.node));
  }
  std::move(inner.objects_.uninterpreted.begin(), inner.objects_.uninterpreted.end(),
            std::back_inserter(objects_.uninterpreted));
  std::move(inner.objects_.findings.begin(), inner.objects_.findings.end(),
            std::back_inserter(objects_.findings));
}

/// A torch.save file inside of the pickle: its entries below this path.
Result<void> TorchWalk::visit_nested_file(const PickleNode& node, Keep keep) {
  if (!context_.read_nested) {
    CKPTVERIFY_TRY_VOID(leave_out(": a torch.save file inside of the pickle"));
    return emit(Opaque{callee(node)}, keep);
  }
  CKPTVERIFY_TRY(const auto file, nested_file(node, context_));
  const std::size_t size = path_.size();
  for (const Entry& entry : file->entries) {
    if (!entry.path.empty()) path_ = joined(path_, entry.path);
    CKPTVERIFY_TRY_VOID(emit(entry.node, keep));
    path_.resize(size);
  }
  objects_.findings.insert(objects_.findings.end(), file->findings.begin(), file->findings.end());
  objects_.uninterpreted.insert(objects_.uninterpreted.end(), file->uninterpreted.begin(),
                                file->uninterpreted.end());
  return {};
}

/// torch.Generator(device), and its state: (seed, offset or None, state).
Result<void> TorchWalk::visit_generator(const PickleNode& node, Keep keep) {
  CKPTVERIFY_TRY_VOID(visit_at("device", *argument(node, 0), keep));
  constexpr std::array<std::string_view, 3> kNames = {"initial_seed", "offset", "state"};
  for (const PickleNode* state : node.states()) {
    const auto parts = state->items();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string name = i < kNames.size() ? std::string(kNames[i]) : std::to_string(i);
      CKPTVERIFY_TRY_VOID(visit_at(name, *parts[i], keep));
    }
  }
  return {};
}

/// numpy.random._pickle: __generator_ctor of a bit generator, __bit_generator_ctor of a class or a
/// name, __randomstate_ctor. The state is a dictionary that names the bit generator, or a pair of
/// it and the seed sequence.
Result<void> TorchWalk::visit_numpy_generator(const PickleNode& node, Keep keep) {
  const PickleNode* outer = node.states().empty() ? nullptr : node.states()[0];
  const bool stateless = outer == nullptr || outer->is_none();
  for (const PickleNode* given : node.items()[1]->items()) {
    // A RandomState repeats what its bit generator holds.
    if (stateless && given->kind == PickleKind::kCall) CKPTVERIFY_TRY_VOID(visit(*given, keep));
  }
  for (const PickleNode* state : node.states()) {
    const bool pair = state->kind == PickleKind::kTuple;
    for (const PickleNode* part : pair ? state->items() : node.states()) {
      if (part->kind == PickleKind::kDict) {
        CKPTVERIFY_TRY_VOID(visit_pairs(part->pairs(), keep));
      } else if (!part->is_none()) {
        CKPTVERIFY_TRY_VOID(visit_at("seed_sequence", *part, keep));
      }
    }
  }
  return {};
}

/// What FSDP's ShardedTensor says of itself: (local shards, metadata, process group, sharding,
/// ...).
Result<void> TorchWalk::visit_shards(PickleItems parts) {
  constexpr std::array<std::string_view, 4> kNames = {"local_shards", "metadata", "process_group",
                                                      "sharding_spec"};
  for (std::size_t i = 0; i < std::min(parts.size(), kNames.size()); ++i) {
    CKPTVERIFY_TRY_VOID(visit_at(kNames[i], *parts[i], Keep::kAll));
  }
  return {};
}

/// A ShardedTensor of before 2.0, which was no tensor.
Result<void> TorchWalk::visit_sharded(const PickleNode& node, Keep keep) {
  const PickleItems states = node.states();
  if (states.size() != 1 || states[0]->kind != PickleKind::kTuple) {
    return visit_opaque(node, callee(node), keep);
  }
  local_shards_.push_back(path_);
  CKPTVERIFY_TRY_VOID(emit(Opaque{callee(node)}, keep));
  return visit_shards(states[0]->items());
}

/// Calls whose result is a value or a few named values.
std::optional<Node> TorchWalk::simple_call(const PickleNode& node, const std::string& name) {
  const PickleNode* first = argument(node, 0);
  if (auto bytes = bytes_of(node)) return Value(ByteString{*std::move(bytes)});
  if (name == "builtins.bytearray") {
    auto bytes = first == nullptr ? std::vector<std::byte>() : bytes_of(*first);
    if (bytes) return Value(ByteString{*std::move(bytes)});
  }
  const auto text = first == nullptr ? std::nullopt : first->string();
  if (name == "torch.device" && text) {
    const PickleNode* index = argument(node, 1);
    return Value(std::string(*text) + (index == nullptr ? "" : ":" + value_text(index->value())));
  }
  if (name == "torch.serialization._get_layout" && text) return Value(std::string(*text));
  const auto named = [&](std::string kind, std::array<const char*, 3> names) {
    std::vector<std::pair<std::string, Node>> parts;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (const PickleNode* part = argument(node, i)) parts.emplace_back(names[i], part->value());
    }
    return composite(std::move(kind), std::move(parts));
  };
  if (name == "builtins.complex") return named("complex", {"real", "imag", "rest"});
  if (name == "builtins.range") return named("range", {"start", "stop", "step"});
  if (name == "builtins.slice") return named("slice", {"start", "stop", "step"});
  return std::nullopt;
}

Result<void> TorchWalk::visit_call(const PickleNode& node, Keep keep) {
  const std::string name = callee(node);
  if (is_tensor_function(name)) {
    CKPTVERIFY_TRY(auto tensor, rebuild_tensor(node, context_));
    CKPTVERIFY_TRY_VOID(emit(std::move(tensor), keep));
    // A parameter with attributes of its own.
    const PickleNode* state = argument(node, 3);
    if (name != "torch._utils._rebuild_parameter_with_state" || state == nullptr) return {};
    return visit(*state, Keep::kTensors);
  }
  if (name == "torch._tensor._rebuild_from_type_v2" || name == "torch._tensor._rebuild_from_type") {
    return visit_subclass(node, keep);
  }
  if (is_numpy_array(node)) {
    CKPTVERIFY_TRY(auto array, numpy_array(node));
    const bool opaque = std::holds_alternative<Opaque>(array);
    CKPTVERIFY_TRY_VOID(emit(std::move(array), keep));
    if (!opaque) return {};
    for (const PickleNode* state : node.states()) {  // an array of objects
      CKPTVERIFY_TRY_VOID(visit(*state, Keep::kTensors));
    }
    return {};
  }
  if (is_numpy_scalar(node)) {
    CKPTVERIFY_TRY(auto scalar, numpy_scalar(node));
    return emit(std::move(scalar), keep);
  }
  if (auto simple = simple_call(node, name)) return emit(*std::move(simple), keep);
  if (is_nested_file(node)) return visit_nested_file(node, keep);
  const bool generator = name == "torch.Generator" || name == "torch._C.Generator";
  if (generator && argument(node, 0) != nullptr) {
    return visit_generator(node, keep);
  }
  if (name.starts_with("numpy.random._pickle.__")) return visit_numpy_generator(node, keep);
  return visit_container(node, name, keep);
}

/// Calls that make lists, dictionaries, sets, modules or objects of other classes.
Result<void> TorchWalk::visit_container(const PickleNode& node, const std::string& name,
                                        Keep keep) {
  if (is_mapping_call(name)) return visit_mapping(node, keep);
  const PickleNode* first = argument(node, 0);
  if (name == "builtins.set" || name == "builtins.frozenset") {
    return visit_set(first == nullptr ? node.added() : first->items(), keep);
  }
  if (is_list_call(name)) {
    const auto given = first == nullptr ? PickleItems() : first->items();
    const auto added = node.added();
    std::vector<PickleNode*> items(given.begin(), given.end());
    items.insert(items.end(), added.begin(), added.end());
    return visit_list(items, keep);
  }
  if (name == "torch.jit._pickle.restore_type_tag" && first != nullptr) return visit(*first, keep);
  if (is_module(node)) return visit_module(node, keep);
  return visit_opaque(node, class_of(node), keep);
}

Result<void> TorchWalk::visit_object(const PickleNode& node, Keep keep) {
  if (is_module(node)) return visit_module(node, keep);
  const std::string name = callee(node);
  if (is_script_object(node)) {
    // LibTorch's modules: attributes and submodules are one dictionary. A submodule without any,
    // like a ReLU, is nothing.
    CKPTVERIFY_TRY_VOID(visit_module(node, keep));
    if (!attribute_dicts(node.states()).empty()) return {};
    for (const PickleNode* state : node.states()) {  // from __getstate__: packed parameters
      CKPTVERIFY_TRY_VOID(visit(*state, keep));
    }
    return {};
  }
  if (name.ends_with(".ShardedTensor")) return visit_sharded(node, keep);
  if (is_mapping_call(name) || !node.pairs().empty()) {
    return visit_mapping(node, keep);  // also of a class derived from dict
  }
  return visit_opaque(node, class_of(node), keep);
}

}  // namespace ckptverify
