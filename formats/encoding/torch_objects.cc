// Containers, and the walk itself.
#include "formats/encoding/torch_objects.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/python_names.h"
#include "formats/encoding/torch_walk.h"

namespace ckptverify {
namespace {

// As many are made room for at once, so that growing does not need the memory twice.
constexpr std::size_t kReservedMax = 1 << 20;
// Comparing each key with each other is faster than a table up to here.
constexpr std::size_t kFewKeys = 8;
// Shown of the tensors whose other shards are elsewhere.
constexpr std::size_t kShownMax = 8;
// Keys that are set twice are listed one by one up to here.
constexpr std::size_t kRepeatedKeysMax = 64;

bool is_tensor_node(const Node& node) {
  return std::holds_alternative<Tensor>(node) ||
         std::holds_alternative<std::shared_ptr<const Composite>>(node);
}

bool is_plain_container(const PickleNode& node) {
  return node.kind == PickleKind::kList || node.kind == PickleKind::kTuple ||
         node.kind == PickleKind::kDict || node.kind == PickleKind::kSet ||
         node.kind == PickleKind::kFrozenSet;
}

/// The index below `size` whose decimal text comes next: 0, 1, 10, 100, 101, ..., 11, ...
std::size_t next_index(std::size_t index, std::size_t size) {
  if (index != 0 && index <= (size - 1) / 10) return 10 * index;
  while (index != 0 && (index % 10 == 9 || index + 1 >= size)) index /= 10;
  return index + 1;
}

bool is_same_scalar(const PickleNode& a, const PickleNode& b) {
  if (a.kind != b.kind) return false;
  return a.kind == PickleKind::kString ? a.string() == b.string() : a.value() == b.value();
}

}  // namespace

TorchWalk::TorchWalk(const PickleTree& tree, const TorchContext& context)
    : TorchWalk(context, TorchBudget(tree)) {
  objects_.entries.reserve(std::min(tree.nodes().size(), kReservedMax));
}

Result<void> TorchWalk::emit(Node node, Keep keep) {
  if (keep == Keep::kTensors && !is_tensor_node(node)) return {};
  CKPTVERIFY_TRY_VOID(budget_.keep(path_, node));
  Entry& entry = objects_.entries.emplace_back();
  entry.path = path_;
  entry.node = std::move(node);
  return {};
}

/// What stands at this path is not interpreted.
Result<void> TorchWalk::leave_out(std::string_view what) {
  CKPTVERIFY_TRY_VOID(budget_.keep_note(path_));
  objects_.uninterpreted.push_back(path_ + std::string(what));
  return {};
}

/// An object that contains itself. Modules and other objects point back to what holds them, and
/// that is all there is to say; lists and dictionaries that do have no end and no paths.
Result<void> TorchWalk::back_reference(const PickleNode& node, Keep keep) {
  const auto first = std::find(open_.begin(), open_.end(), &node);
  if (std::all_of(first, open_.end(),
                  [](const PickleNode* open) { return is_plain_container(*open); })) {
    CKPTVERIFY_TRY_VOID(leave_out(path_.empty()
                                      ? "the object: a list or dictionary that contains itself"
                                      : ": a list or dictionary that contains itself"));
  }
  return emit(Opaque{"reference to an enclosing object"}, keep);
}

Result<void> TorchWalk::visit(const PickleNode& node, Keep keep) {
  if (open_.size() >= kPickleDepthMax) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "the pickle's objects nest too deep; expected at most " +
                            std::to_string(kPickleDepthMax) + " levels",
                 .offset = node.offset};
  }
  CKPTVERIFY_TRY_VOID(budget_.visit(node));
  if (node.is_scalar()) return keep == Keep::kAll ? emit(node.value(), keep) : Result<void>();
  if (std::find(open_.begin(), open_.end(), &node) != open_.end()) {
    return back_reference(node, keep);
  }
  open_.push_back(&node);
  auto visited = visit_open(node, keep);
  open_.pop_back();
  return visited;
}

Result<void> TorchWalk::visit_at(std::string_view key, const PickleNode& node, Keep keep) {
  CKPTVERIFY_TRY_VOID(budget_.read_text(key.size()));
  const std::size_t size = path_.size();
  if (!path_.empty()) path_ += '.';
  path_ += key;
  auto visited = visit(node, keep);
  path_.resize(size);
  return visited;
}

Result<void> TorchWalk::visit_open(const PickleNode& node, Keep keep) {
  switch (node.kind) {
    case PickleKind::kList:
    case PickleKind::kTuple:
      return visit_list(node.items(), keep);
    case PickleKind::kSet:
    case PickleKind::kFrozenSet:
      return visit_set(node.items(), keep);
    case PickleKind::kDict:
      return visit_mapping(node, keep);
    case PickleKind::kGlobal: {
      std::string name = qualified_name(node);
      if (is_named_value(name)) return emit(Value(std::move(name)), keep);
      return emit(Opaque{std::move(name)}, keep);
    }
    case PickleKind::kBuffer:
      CKPTVERIFY_TRY_VOID(leave_out(": bytes that the writer kept outside of the pickle"));
      return emit(Opaque{"out-of-band buffer"}, keep);
    case PickleKind::kPersistent: {
      if (!is_storage(node)) {
        const std::string name = qualified_name(node);
        if (!name.empty()) return emit(Opaque{name}, keep);  // a class with its source
        if (context_.by_id) {
          CKPTVERIFY_TRY(auto tensor, context_.by_id(*node.items()[0]));
          return emit(std::move(tensor), keep);
        }
        CKPTVERIFY_TRY_VOID(leave_out(": a persistent id that is no storage"));
        return emit(Opaque{"persistent id"}, keep);
      }
      CKPTVERIFY_TRY(auto tensor, rebuild_tensor(node, context_));
      return emit(std::move(tensor), keep);
    }
    case PickleKind::kCall:
      return visit_call(node, keep);
    case PickleKind::kObject:
      return visit_object(node, keep);
    default:
      return emit(node.value(), keep);
  }
}

/// In the order of their paths, so that a list of a million is not sorted afterwards.
Result<void> TorchWalk::visit_list(PickleItems items, Keep keep) {
  if (items.empty()) return emit(Value(EmptyList{}), keep);
  std::array<char, std::numeric_limits<std::size_t>::digits10 + 1> digits;
  for (std::size_t count = 0, i = 0; count < items.size(); ++count) {
    const auto end = std::to_chars(digits.begin(), digits.end(), i).ptr;
    CKPTVERIFY_TRY_VOID(visit_at(std::string_view(digits.begin(), end), *items[i], keep));
    i = next_index(i, items.size());
  }
  return {};
}

/// A set has no order, and strings hash differently in each process: plain values are sorted.
Result<void> TorchWalk::visit_set(PickleItems items, Keep keep) {
  const auto plain = [](const PickleNode* item) { return item->is_scalar(); };
  if (!std::all_of(items.begin(), items.end(), plain)) return visit_list(items, keep);
  std::vector<std::pair<std::vector<std::byte>, PickleNode*>> sorted;
  for (PickleNode* item : items) sorted.emplace_back(value_cbor(item->value()), item);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PickleNode*> in_order;
  for (const auto& [key, item] : sorted) in_order.push_back(item);
  return visit_list(in_order, keep);
}

/// Which pairs a later one of the same key replaces. Only equal keys of one type are one key.
std::vector<bool> TorchWalk::overwritten(std::span<const PicklePair> pairs) {
  std::vector<bool> dropped(pairs.size(), false);
  const auto drop = [&](std::size_t i) {
    const PickleNode& key = *pairs[i].first;
    dropped[i] = true;
    if (++repeated_keys_ > kRepeatedKeysMax) return;
    objects_.findings.push_back(
        {.check = "static.pickle",
         .status = Status::kFail,
         .cause = Cause{CauseKind::kLayout},
         .subject = joined(path_, key_text(key)),
         .message = "byte " + std::to_string(key.offset) +
                    ": a dictionary sets one key twice, the later value counts",
         .evidence = {{"offset", std::to_string(key.offset)}}});
  };
  if (pairs.size() <= kFewKeys) {
    for (std::size_t i = pairs.size(); i-- > 0;) {
      const PickleNode& key = *pairs[i].first;
      for (std::size_t j = i + 1; j < pairs.size() && key.is_scalar() && !dropped[i]; ++j) {
        if (is_same_scalar(key, *pairs[j].first)) drop(i);
      }
    }
    return dropped;
  }
  std::unordered_set<std::string_view> texts;
  std::unordered_set<std::string> others;
  for (std::size_t i = pairs.size(); i-- > 0;) {
    const PickleNode& key = *pairs[i].first;
    if (!key.is_scalar()) continue;
    const auto text = key.string();
    const bool first = text ? texts.insert(*text).second
                            : others.insert(static_cast<char>(key.kind) + key_text(key)).second;
    if (!first) drop(i);
  }
  return dropped;
}

Result<void> TorchWalk::visit_pairs(std::span<const PicklePair> pairs, Keep keep) {
  CKPTVERIFY_TRY_VOID(budget_.read_keys(pairs));
  const auto dropped = overwritten(pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (dropped[i]) continue;
    const PickleNode& key = *pairs[i].first;
    if (const auto text = key.string()) {
      CKPTVERIFY_TRY_VOID(visit_at(*text, *pairs[i].second, keep));
    } else {
      CKPTVERIFY_TRY_VOID(visit_at(key_text(key), *pairs[i].second, keep));
    }
  }
  return {};
}

Result<void> TorchWalk::visit_mapping(const PickleNode& node, Keep keep) {
  std::vector<PicklePair> pairs;
  // Counter({...}), OrderedDict([(key, value), ...]), defaultdict(factory, {...}).
  const auto given = node.kind == PickleKind::kDict ? PickleItems() : node.items()[1]->items();
  for (const PickleNode* initial : given) {
    const auto inner = initial->pairs();
    pairs.insert(pairs.end(), inner.begin(), inner.end());
    if (initial->kind != PickleKind::kList) continue;
    for (const PickleNode* pair : initial->items()) {
      const auto two = pair->items();
      if (two.size() == 2) pairs.emplace_back(two[0], two[1]);
    }
  }
  const auto set = node.pairs();
  if (pairs.empty() && set.empty()) {
    CKPTVERIFY_TRY_VOID(emit(Value(EmptyMap{}), keep));
  } else if (pairs.empty()) {
    CKPTVERIFY_TRY_VOID(visit_pairs(set, keep));
  } else {
    pairs.insert(pairs.end(), set.begin(), set.end());
    CKPTVERIFY_TRY_VOID(visit_pairs(pairs, keep));
  }
  return visit_states(node.states(), keep);
}

/// The attributes that BUILD sets.
Result<void> TorchWalk::visit_states(PickleItems states, Keep keep) {
  for (const PickleNode* dict : attribute_dicts(states)) {
    std::vector<PicklePair> kept;
    for (const auto& pair : dict->pairs()) {
      // Module.state_dict() hangs versions on its OrderedDict: no part of the state.
      if (pair.first->string() != "_metadata") kept.push_back(pair);
    }
    CKPTVERIFY_TRY_VOID(visit_pairs(kept, keep));
  }
  return {};
}

TorchObjects TorchWalk::finish() && {
  if (repeated_keys_ > kRepeatedKeysMax) {
    objects_.findings.push_back({.check = "static.pickle",
                                 .status = Status::kFail,
                                 .cause = Cause{CauseKind::kLayout},
                                 .message = "and " +
                                            std::to_string(repeated_keys_ - kRepeatedKeysMax) +
                                            " more keys that dictionaries set twice"});
  }
  if (!local_shards_.empty()) {
    Finding finding{.check = "static.container",
                    .status = Status::kWarn,
                    .message = std::to_string(local_shards_.size()) +
                               " tensors are sharded over ranks: only the shard of the rank that "
                               "wrote this file is in it"};
    for (const std::string& path : local_shards_) {
      if (finding.evidence.size() < kShownMax) finding.evidence.push_back({"tensor", path});
    }
    objects_.findings.push_back(std::move(finding));
  }
  return std::move(objects_);
}

Result<TorchObjects> read_torch_objects(const PickleTree& tree, const TorchContext& context) {
  TorchWalk walk(tree, context);
  CKPTVERIFY_TRY_VOID(walk.visit(tree.root(), Keep::kAll));
  TorchObjects objects = std::move(walk).finish();
  auto globals = judge_globals(tree);
  std::move(globals.begin(), globals.end(), std::back_inserter(objects.findings));
  return objects;
}

}  // namespace ckptverify
