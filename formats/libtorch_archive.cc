// LibTorch archives.
//
//   zip: | <p>/data/0 ... | <p>/data.pkl | <p>/code/... | <p>/constants.pkl | <p>/version | ... |
//
//   data.pkl: objects of classes __torch__..., each with a dictionary of parameters, buffers,
//   attributes and submodules.
//
// An optimizer's state is keyed by addresses of the process that saved it:
//
//   state: {"93948531385024": {step, exp_avg, ...}},
//   param_groups: {"param_groups/size": n, "param_groups/0": {"params/size": m,
//                  "params/0": "93948531385024", ..., options: {lr, ...}}}
//
// and becomes what Python's optimizer.state_dict() is: state keyed by the parameter's position in
// the groups, groups with their options and those positions. Source:
// torch/csrc/api/include/torch/optim/serialize.h.
#include "formats/libtorch_archive.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/container/torch_file.h"
#include "formats/encoding/pickle_globals.h"

namespace ckptverify {
namespace {

using Pairs = std::vector<PicklePair>;

/// The one dictionary of an object's attributes; null for what has none.
PickleNode* attributes_of(PickleNode& node) {
  if (node.kind != PickleKind::kObject || node.states().size() != 1) return nullptr;
  return node.states()[0]->kind == PickleKind::kDict ? node.states()[0] : nullptr;
}

PickleNode* attribute(PickleNode& node, std::string_view name) {
  PickleNode* dict = attributes_of(node);
  if (dict == nullptr) return nullptr;
  for (const auto& [key, value] : dict->pairs()) {
    if (key->string() == name) return value;
  }
  return nullptr;
}

class OptimizerRewriting {
 public:
  OptimizerRewriting(TorchArchive& archive, PickleTree& tree)
      : archive_(archive), tree_(tree), context_(archive_context(archive)) {}
  /// Rewrites every optimizer at or below the node.
  Result<void> visit(PickleNode& node, unsigned depth);

 private:
  Result<void> rewrite(PickleNode& optimizer);
  Result<PickleNode*> group(PickleNode& group);
  PickleNode& state(PickleNode& state);
  Result<void> check_count(PickleNode& owner, std::string_view name, std::uint64_t listed);

  PickleNode& integer(std::uint64_t value, std::uint64_t offset) {
    return tree_.add_integer(static_cast<std::int64_t>(value), offset);
  }
  void append(PickleNode& list, PickleNode& item) {
    PickleNode* items[] = {&item};
    tree_.append(list, items);
  }
  void note(CauseKind cause, std::uint64_t offset, std::string message) {
    archive_.findings.push_back({.check = "static.container",
                                 .status = Status::kFail,
                                 .cause = Cause{cause},
                                 .subject = archive_.name,
                                 .message = "byte " + std::to_string(offset) + ": " + message,
                                 .evidence = {{"offset", std::to_string(offset)}}});
  }

  TorchArchive& archive_;
  PickleTree& tree_;
  TorchContext context_;
  std::set<const PickleNode*> seen_;
  std::map<std::string_view, std::uint64_t>
      positions_;  // of the optimizer at hand: address, position
};

Result<void> OptimizerRewriting::visit(PickleNode& node, unsigned depth) {
  if (depth > kPickleDepthMax || !seen_.insert(&node).second) return {};
  PickleNode* groups = attribute(node, "param_groups");
  if (attribute(node, "state") != nullptr && groups != nullptr &&
      attribute(*groups, "param_groups/size") != nullptr) {
    return rewrite(node);
  }
  PickleNode* attributes = attributes_of(node);
  if (attributes == nullptr) return {};
  for (const auto& [key, value] : attributes->pairs()) {
    CKPTVERIFY_TRY_VOID(visit(*value, depth + 1));
  }
  return {};
}

/// "param_groups/size" and "params/size" are tensors of one int64.
Result<void> OptimizerRewriting::check_count(PickleNode& owner, std::string_view name,
                                             std::uint64_t listed) {
  const PickleNode* node = attribute(owner, name);
  if (node == nullptr) {
    note(CauseKind::kLayout, owner.offset, "an optimizer has no " + std::string(name));
    return {};
  }
  CKPTVERIFY_TRY(const auto rebuilt, rebuild_tensor(*node, context_));
  const auto* tensor = std::get_if<Tensor>(&rebuilt);
  if (tensor == nullptr || tensor->dtype != DType::kInt64 || logical_size(*tensor) != 8 ||
      tensor->absent || tensor->pieces[0].run.decode != nullptr) {
    archive_.uninterpreted.push_back(std::string(name) + " of an optimizer is no stored number");
    return {};
  }
  const Run& run = tensor->pieces[0].run;
  CKPTVERIFY_TRY(const auto bytes,
                 slice(archive_.place.bytes,
                       run.offset - archive_.place.base + 8 * tensor->pieces[0].first_element, 8));
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t k = archive_.byte_order == ByteOrder::kBig ? i : 7 - i;
    count = (count << 8) | std::to_integer<std::uint64_t>(bytes[k]);
  }
  if (count != listed) {
    note(CauseKind::kLayout, run.offset,
         std::string(name) + " contradicts the list; found " + std::to_string(count) +
             ", expected " + std::to_string(listed));
  }
  return {};
}

Result<PickleNode*> OptimizerRewriting::group(PickleNode& group) {
  Pairs pairs;
  PickleNode& params = tree_.add_sequence(PickleKind::kList, {}, group.offset);
  for (std::uint64_t i = 0;; ++i) {
    PickleNode* address = attribute(group, "params/" + std::to_string(i));
    if (address == nullptr || !address->string()) break;
    const std::uint64_t position = positions_.size();
    if (!positions_.emplace(*address->string(), position).second) {
      note(CauseKind::kOptMap, address->offset, "an optimizer lists one parameter twice");
    }
    append(params, integer(position, address->offset));
  }
  CKPTVERIFY_TRY_VOID(check_count(group, "params/size", params.items().size()));
  if (PickleNode* attributes = attributes_of(group)) {
    for (const auto& [key, value] : attributes->pairs()) {
      const auto name = key->string();
      if (name == "options") {
        const PickleNode* options = attributes_of(*value);
        if (options != nullptr) {
          const auto given = options->pairs();
          pairs.insert(pairs.end(), given.begin(), given.end());
        }
      } else if (!name || !name->starts_with("params/")) {
        pairs.emplace_back(key, value);
      }
    }
  }
  constexpr std::string_view kParams = "params";
  pairs.emplace_back(&tree_.add_text(PickleKind::kString, as_bytes(kParams), group.offset),
                     &params);
  return &tree_.add_dict(pairs, group.offset);
}

PickleNode& OptimizerRewriting::state(PickleNode& state) {
  Pairs pairs;
  if (PickleNode* attributes = attributes_of(state)) {
    for (const auto& [key, value] : attributes->pairs()) {
      const auto address = key->string();
      const auto position = address ? positions_.find(*address) : positions_.end();
      if (position == positions_.end()) {
        note(CauseKind::kOptMap, key->offset,
             "an optimizer has state of a parameter that no group lists");
        pairs.emplace_back(key, value);
      } else {
        pairs.emplace_back(&integer(position->second, key->offset), value);
      }
    }
  }
  return tree_.add_dict(pairs, state.offset);
}

Result<void> OptimizerRewriting::rewrite(PickleNode& optimizer) {
  positions_.clear();
  PickleNode& groups = *attribute(optimizer, "param_groups");
  PickleNode& list = tree_.add_sequence(PickleKind::kList, {}, groups.offset);
  for (std::uint64_t i = 0;; ++i) {
    PickleNode* next = attribute(groups, "param_groups/" + std::to_string(i));
    if (next == nullptr) break;
    CKPTVERIFY_TRY(PickleNode * rewritten, group(*next));
    append(list, *rewritten);
  }
  CKPTVERIFY_TRY_VOID(check_count(groups, "param_groups/size", list.items().size()));
  Pairs pairs;
  for (const auto& [key, value] : attributes_of(optimizer)->pairs()) {
    const auto name = key->string();
    if (name == "state") {
      pairs.emplace_back(key, &state(*value));
    } else if (name == "param_groups") {
      pairs.emplace_back(key, &list);
    } else {
      pairs.emplace_back(key, value);
    }
  }
  optimizer = tree_.add_dict(pairs, optimizer.offset);
  return {};
}

}  // namespace

bool sniff_libtorch_archive(const Source& source) {
  return !source.is_directory() &&
         torch_archive_kind(source.bytes()) == TorchArchiveKind::kLibTorch;
}

Result<Checkpoint> read_libtorch_archive(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(auto archive, open_torch_archive({.bytes = source.bytes()}, source.name()));
  CKPTVERIFY_TRY(auto tree, read_archive_tree(archive));
  CKPTVERIFY_TRY_VOID(OptimizerRewriting(archive, tree).visit(tree.root(), 0));
  return archive_checkpoint("libtorch-archive", source, archive, tree);
}

}  // namespace ckptverify
