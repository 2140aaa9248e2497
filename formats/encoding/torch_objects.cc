#include "formats/encoding/torch_objects.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "formats/encoding/numpy_objects.h"
#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/python_names.h"

namespace ckptverify {
namespace {

// An entry is about 300 bytes: 1.2 GB. A shared node is walked once a path, so that a few bytes of
// pickle can ask for any number of entries.
constexpr std::size_t kEntriesMax = 4'000'000;
// Nodes visited without an entry to show for it: lists of empty lists, and the like.
constexpr std::size_t kVisitsMax = 16'000'000;

using Parts = std::vector<std::pair<std::string, Node>>;

bool is_tensor_node(const Node& node) {
  return std::holds_alternative<Tensor>(node) ||
         std::holds_alternative<std::shared_ptr<const Composite>>(node);
}

enum class Keep { kAll, kTensors };

class Walk {
 public:
  explicit Walk(const TorchContext& context) : context_(context) {}
  Result<void> visit(const std::string& path, const PickleNode& node, Keep keep);
  TorchObjects finish();

 private:
  Result<void> visit_inner(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_call(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_object(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_opaque(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_module(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_subclass(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_list(const std::string& path, const std::vector<const PickleNode*>& items,
                          Keep keep);
  Result<void> visit_set(const std::string& path, std::vector<const PickleNode*> items, Keep keep);
  Result<void> visit_mapping(const std::string& path, const PickleNode& node, Keep keep);
  Result<void> visit_pairs(const std::string& path,
                           const std::vector<std::pair<PickleNode*, PickleNode*>>& pairs,
                           Keep keep);
  Result<void> visit_attributes(const std::string& path, const PickleNode& node, Keep keep);
  std::optional<Node> simple_call(const PickleNode& node, const std::string& name);

  Result<void> emit(const std::string& path, Node node, Keep keep) {
    if (keep == Keep::kTensors && !is_tensor_node(node)) return {};
    if (parts_.size() >= kEntriesMax) {
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "the pickle has too many entries; expected at most " +
                              std::to_string(kEntriesMax)};
    }
    parts_.emplace_back(path, std::move(node));
    return {};
  }

  const TorchContext& context_;
  Parts parts_;
  std::vector<Finding> findings_;
  std::vector<std::string> uninterpreted_;
  std::vector<const PickleNode*> open_;  // from the root to the node being visited
  std::size_t visits_ = 0;
};

std::vector<const PickleNode*> view_of(const std::vector<PickleNode*>& items) {
  return {items.begin(), items.end()};
}

Result<void> Walk::visit(const std::string& path, const PickleNode& node, Keep keep) {
  if (std::find(open_.begin(), open_.end(), &node) != open_.end()) {
    return emit(path, Opaque{"reference to an enclosing object"}, keep);
  }
  if (open_.size() >= kPickleDepthMax || ++visits_ > kVisitsMax) {
    return Error{
        .kind = ErrorKind::kUnsupported,
        .message = "the pickle's objects nest too deep or are too many; expected at most " +
                   std::to_string(kPickleDepthMax) + " levels and " + std::to_string(kVisitsMax) +
                   " visits",
        .offset = node.offset};
  }
  open_.push_back(&node);
  auto visited = visit_inner(path, node, keep);
  open_.pop_back();
  return visited;
}

Result<void> Walk::visit_inner(const std::string& path, const PickleNode& node, Keep keep) {
  switch (node.kind) {
    case PickleKind::kScalar:
    case PickleKind::kByteArray:
      return emit(path, node.value, keep);
    case PickleKind::kList:
    case PickleKind::kTuple:
      return visit_list(path, view_of(node.items), keep);
    case PickleKind::kSet:
    case PickleKind::kFrozenSet:
      return visit_set(path, view_of(node.items), keep);
    case PickleKind::kDict:
      return visit_mapping(path, node, keep);
    case PickleKind::kGlobal: {
      std::string name = qualified_name(node);
      if (is_named_value(name)) return emit(path, Value(std::move(name)), keep);
      return emit(path, Opaque{std::move(name)}, keep);
    }
    case PickleKind::kBuffer:
      uninterpreted_.push_back(path + ": bytes that the writer kept outside of the pickle");
      return emit(path, Opaque{"out-of-band buffer"}, keep);
    case PickleKind::kPersistent: {
      if (!is_storage(node)) return emit(path, Opaque{"persistent id"}, keep);
      CKPTVERIFY_TRY(auto tensor, rebuild_tensor(node, context_));
      return emit(path, std::move(tensor), keep);
    }
    case PickleKind::kCall:
      return visit_call(path, node, keep);
    case PickleKind::kObject:
      return visit_object(path, node, keep);
  }
  return {};
}

Result<void> Walk::visit_list(const std::string& path, const std::vector<const PickleNode*>& items,
                              Keep keep) {
  if (items.empty()) return emit(path, Value(EmptyList{}), keep);
  for (std::size_t i = 0; i < items.size(); ++i) {
    CKPTVERIFY_TRY_VOID(visit(joined(path, std::to_string(i)), *items[i], keep));
  }
  return {};
}

/// A set has no order, and strings hash differently in each process: plain values are sorted.
Result<void> Walk::visit_set(const std::string& path, std::vector<const PickleNode*> items,
                             Keep keep) {
  const auto plain = [](const PickleNode* item) { return item->kind == PickleKind::kScalar; };
  if (std::all_of(items.begin(), items.end(), plain)) {
    std::stable_sort(items.begin(), items.end(), [](const PickleNode* a, const PickleNode* b) {
      return value_cbor(a->value) < value_cbor(b->value);
    });
  }
  return visit_list(path, items, keep);
}

Result<void> Walk::visit_pairs(const std::string& path,
                               const std::vector<std::pair<PickleNode*, PickleNode*>>& pairs,
                               Keep keep) {
  // Python keeps the last of two values of one key. Only equal keys of one type are one key.
  std::set<std::pair<std::size_t, std::string>> seen;
  std::vector<bool> dropped(pairs.size(), false);
  for (std::size_t i = pairs.size(); i-- > 0;) {
    const PickleNode& key = *pairs[i].first;
    if (key.kind != PickleKind::kScalar) continue;
    if (seen.emplace(key.value.index(), key_text(key)).second) continue;
    dropped[i] = true;
    findings_.push_back({.check = "static.pickle",
                         .status = Status::kFail,
                         .cause = Cause{CauseKind::kLayout},
                         .subject = joined(path, key_text(key)),
                         .message = "byte " + std::to_string(key.offset) +
                                    ": a dictionary sets one key twice, the later value counts",
                         .evidence = {{"offset", std::to_string(key.offset)}}});
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (dropped[i]) continue;
    CKPTVERIFY_TRY_VOID(visit(joined(path, key_text(*pairs[i].first)), *pairs[i].second, keep));
  }
  return {};
}

Result<void> Walk::visit_mapping(const std::string& path, const PickleNode& node, Keep keep) {
  std::vector<std::pair<PickleNode*, PickleNode*>> pairs;
  // Counter({...}), OrderedDict([(key, value), ...]), defaultdict(factory, {...}).
  const std::vector<PickleNode*> none;
  const auto& given = node.kind == PickleKind::kDict ? none : node.items[1]->items;
  for (const PickleNode* initial : given) {
    pairs.insert(pairs.end(), initial->pairs.begin(), initial->pairs.end());
    if (initial->kind != PickleKind::kList) continue;
    for (const PickleNode* pair : initial->items) {
      if (pair->items.size() == 2) pairs.emplace_back(pair->items[0], pair->items[1]);
    }
  }
  pairs.insert(pairs.end(), node.pairs.begin(), node.pairs.end());
  if (pairs.empty()) {
    CKPTVERIFY_TRY_VOID(emit(path, Value(EmptyMap{}), keep));
  }
  CKPTVERIFY_TRY_VOID(visit_pairs(path, pairs, keep));
  return visit_attributes(path, node, keep);
}

Result<void> Walk::visit_attributes(const std::string& path, const PickleNode& node, Keep keep) {
  for (const PickleNode* dict : attribute_dicts(node)) {
    std::vector<std::pair<PickleNode*, PickleNode*>> kept;
    for (const auto& pair : dict->pairs) {
      // Module.state_dict() hangs versions on its OrderedDict: no part of the state.
      if (pair.first->string() == nullptr || *pair.first->string() != "_metadata") {
        kept.push_back(pair);
      }
    }
    CKPTVERIFY_TRY_VOID(visit_pairs(path, kept, keep));
  }
  return {};
}

/// A class of which we know the name alone. Its attributes are listed as what they are; what its
/// constructor got and any other state only where tensors are in it.
Result<void> Walk::visit_opaque(const std::string& path, const PickleNode& node, Keep keep) {
  std::string name = callee(node);
  if (name == "builtins.getattr" && argument(node, 0) != nullptr) {
    name = qualified_name(*argument(node, 0));
  }
  if ((name == "copyreg._reconstructor" || name == "copyreg.__newobj__") &&
      argument(node, 0) != nullptr) {
    name = qualified_name(*argument(node, 0));
  }
  CKPTVERIFY_TRY_VOID(emit(path, Opaque{name.empty() ? "computed class" : name}, keep));
  for (std::size_t i = 1; i < node.items.size(); ++i) {
    CKPTVERIFY_TRY_VOID(visit(path, *node.items[i], Keep::kTensors));
  }
  CKPTVERIFY_TRY_VOID(visit_pairs(path, node.pairs, keep));
  for (std::size_t i = 0; i < node.added.size(); ++i) {
    CKPTVERIFY_TRY_VOID(visit(joined(path, std::to_string(i)), *node.added[i], keep));
  }
  const auto dicts = attribute_dicts(node);
  CKPTVERIFY_TRY_VOID(visit_attributes(path, node, keep));
  for (const PickleNode* state : node.states) {
    if (dicts.empty()) CKPTVERIFY_TRY_VOID(visit(path, *state, Keep::kTensors));
  }
  return {};
}

/// A pickled nn.Module: parameters, buffers and submodules under the names of its state dict, and
/// its other attributes. Python's private ones only where they hold tensors.
Result<void> Walk::visit_module(const std::string& path, const PickleNode& node, Keep keep) {
  for (const PickleNode* dict : attribute_dicts(node)) {
    for (const auto& [key, value] : dict->pairs) {
      const std::string name = key_text(*key);
      if (name == "_parameters" || name == "_buffers" || name == "_modules") {
        for (const auto& [member, object] : value->pairs) {
          if (object->is_none()) continue;  // a Linear without bias
          CKPTVERIFY_TRY_VOID(visit(joined(path, key_text(*member)), *object, keep));
        }
        continue;
      }
      const bool inner = name.starts_with('_');
      CKPTVERIFY_TRY_VOID(visit(joined(path, name), *value, inner ? Keep::kTensors : keep));
    }
  }
  return {};
}

/// _rebuild_from_type_v2(function, class, arguments, state): a tensor of a class of its own.
Result<void> Walk::visit_subclass(const std::string& path, const PickleNode& node, Keep keep) {
  const PickleNode* type = argument(node, 1);
  const PickleNode* arguments = argument(node, 2);
  const PickleNode* state = argument(node, 3);
  if (state == nullptr) return visit_opaque(path, node, keep);
  PickleNode call{.kind = PickleKind::kCall, .offset = node.offset};
  call.items = {const_cast<PickleNode*>(argument(node, 0)), const_cast<PickleNode*>(arguments)};
  if (!is_tensor(call)) return visit_opaque(path, node, keep);
  CKPTVERIFY_TRY(Node inner, rebuild_tensor(call, context_));
  // The state in the same shape as BUILD's, walked into parts of their own.
  PickleNode holder{.kind = PickleKind::kObject, .offset = node.offset};
  holder.states = {const_cast<PickleNode*>(state)};
  Walk walk(context_);
  walk.open_ = open_;
  walk.visits_ = visits_;
  CKPTVERIFY_TRY_VOID(walk.visit_attributes("", holder, Keep::kAll));
  visits_ = walk.visits_;
  const std::string name = qualified_name(*type);
  if (walk.parts_.empty() && (name == "torch.nn.parameter.Parameter" || name == "torch.Tensor" ||
                              name == "torch.nn.parameter.Buffer")) {
    return emit(path, std::move(inner), keep);
  }
  Composite composite{name, {}};
  composite.parts.emplace_back("tensor", std::move(inner));
  for (auto& part : walk.parts_) {
    // Two parts of one name would have no order in the digest.
    const auto same = [&](const auto& other) { return other.first == part.first; };
    while (std::any_of(composite.parts.begin(), composite.parts.end(), same)) part.first += "#";
    composite.parts.push_back(std::move(part));
  }
  std::move(walk.uninterpreted_.begin(), walk.uninterpreted_.end(),
            std::back_inserter(uninterpreted_));
  return emit(path, std::make_shared<const Composite>(std::move(composite)), keep);
}

/// Calls whose result is a value or a few named values.
std::optional<Node> Walk::simple_call(const PickleNode& node, const std::string& name) {
  const PickleNode* first = argument(node, 0);
  if (auto bytes = bytes_of(node)) return Value(ByteString{*std::move(bytes)});
  if (name == "builtins.bytearray") {
    auto bytes = first == nullptr ? std::vector<std::byte>() : bytes_of(*first);
    if (bytes) return Value(ByteString{*std::move(bytes)});
  }
  if (name == "torch.device" && first != nullptr && first->string() != nullptr) {
    const PickleNode* index = argument(node, 1);
    return Value(*first->string() + (index == nullptr ? "" : ":" + value_text(index->value)));
  }
  if (name == "torch.serialization._get_layout" && first != nullptr && first->string() != nullptr) {
    return Value(*first->string());
  }
  const auto named = [&](std::string kind, std::array<const char*, 3> names) {
    Composite composite{std::move(kind), {}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (const PickleNode* part = argument(node, i)) {
        composite.parts.emplace_back(names[i], part->value);
      }
    }
    return Node(std::make_shared<const Composite>(std::move(composite)));
  };
  if (name == "builtins.complex") return named("complex", {"real", "imag", "rest"});
  if (name == "builtins.range") return named("range", {"start", "stop", "step"});
  if (name == "builtins.slice") return named("slice", {"start", "stop", "step"});
  return std::nullopt;
}

Result<void> Walk::visit_call(const std::string& path, const PickleNode& node, Keep keep) {
  const std::string name = callee(node);
  if (is_tensor(node)) {
    CKPTVERIFY_TRY(auto tensor, rebuild_tensor(node, context_));
    CKPTVERIFY_TRY_VOID(emit(path, std::move(tensor), keep));
    // A parameter with attributes of its own.
    const PickleNode* state = argument(node, 3);
    if (name != "torch._utils._rebuild_parameter_with_state" || state == nullptr) return {};
    return visit(path, *state, Keep::kTensors);
  }
  if (name == "torch._tensor._rebuild_from_type_v2" || name == "torch._tensor._rebuild_from_type") {
    return visit_subclass(path, node, keep);
  }
  if (is_numpy_array(node)) {
    CKPTVERIFY_TRY(auto array, numpy_array(node));
    const bool opaque = std::holds_alternative<Opaque>(array);
    CKPTVERIFY_TRY_VOID(emit(path, std::move(array), keep));
    return opaque ? visit_attributes(path, node, Keep::kTensors) : Result<void>();
  }
  if (is_numpy_scalar(node)) {
    CKPTVERIFY_TRY(auto scalar, numpy_scalar(node));
    return emit(path, std::move(scalar), keep);
  }
  if (auto simple = simple_call(node, name)) return emit(path, *std::move(simple), keep);
  if (is_mapping_call(name)) return visit_mapping(path, node, keep);
  const PickleNode* first = argument(node, 0);
  if (name == "builtins.set" || name == "builtins.frozenset") {
    return visit_set(path, first == nullptr ? view_of(node.added) : view_of(first->items), keep);
  }
  if (is_list_call(name)) {
    auto items = first == nullptr ? std::vector<const PickleNode*>() : view_of(first->items);
    items.insert(items.end(), node.added.begin(), node.added.end());
    return visit_list(path, items, keep);
  }
  if (name == "torch.jit._pickle.restore_type_tag" && first != nullptr) {
    return visit(path, *first, keep);
  }
  if (name == "torch.storage._load_from_bytes") {
    uninterpreted_.push_back(path + ": a torch.save file inside of the pickle");
  }
  if (is_module(node)) return visit_module(path, node, keep);
  return visit_opaque(path, node, keep);
}

Result<void> Walk::visit_object(const std::string& path, const PickleNode& node, Keep keep) {
  if (is_module(node)) return visit_module(path, node, keep);
  if (is_script_object(node)) {
    // LibTorch's modules: attributes and submodules are one dictionary. A submodule without any,
    // like a ReLU, is nothing.
    CKPTVERIFY_TRY_VOID(visit_module(path, node, keep));
    if (!attribute_dicts(node).empty()) return {};
    for (const PickleNode* state : node.states) {  // from __getstate__: packed parameters
      CKPTVERIFY_TRY_VOID(visit(path, *state, keep));
    }
    return {};
  }
  if (is_mapping_call(callee(node)) || !node.pairs.empty()) {
    return visit_mapping(path, node, keep);  // also of a class derived from dict
  }
  return visit_opaque(path, node, keep);
}

TorchObjects Walk::finish() {
  TorchObjects objects;
  objects.entries.reserve(parts_.size());
  for (auto& [path, node] : parts_) {
    objects.entries.push_back({.path = std::move(path), .node = std::move(node)});
  }
  objects.findings = std::move(findings_);
  objects.uninterpreted = std::move(uninterpreted_);
  return objects;
}

}  // namespace

Result<TorchObjects> read_torch_objects(const PickleTree& tree, const TorchContext& context) {
  Walk walk(context);
  CKPTVERIFY_TRY_VOID(walk.visit("", tree.root(), Keep::kAll));
  TorchObjects objects = walk.finish();
  auto globals = judge_globals(tree);
  std::move(globals.begin(), globals.end(), std::back_inserter(objects.findings));
  return objects;
}

}  // namespace ckptverify
