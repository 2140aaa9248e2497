// The walk from a pickle's root to entries: every kind of object a case, the path in one buffer.
// Private to torch_objects.cc and torch_calls.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/encoding/torch_budget.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {

enum class Keep { kAll, kTensors };

class TorchWalk {
 public:
  TorchWalk(const PickleTree& tree, const TorchContext& context);
  Result<void> visit(const PickleNode& node, Keep keep);
  TorchObjects finish() &&;

 private:
  TorchWalk(const TorchContext& context, TorchBudget budget) : context_(context), budget_(budget) {}

  Result<void> leave_out(std::string_view what);

  Result<void> visit_at(std::string_view key, const PickleNode& node, Keep keep);
  Result<void> visit_open(const PickleNode& node, Keep keep);
  Result<void> visit_call(const PickleNode& node, Keep keep);
  Result<void> visit_container(const PickleNode& node, const std::string& name, Keep keep);
  Result<void> visit_object(const PickleNode& node, Keep keep);
  Result<void> visit_opaque(const PickleNode& node, const std::string& name, Keep keep);
  Result<void> visit_module(const PickleNode& node, Keep keep);
  Result<void> visit_subclass(const PickleNode& node, Keep keep);
  Result<void> visit_tensor_state(std::string_view type, const PickleNode& state);
  Result<void> visit_shards(PickleItems parts);
  void take_parts(TorchWalk inner, std::vector<std::pair<std::string, Node>>& parts);
  Result<void> visit_nested_file(const PickleNode& node, Keep keep);
  Result<void> visit_generator(const PickleNode& node, Keep keep);
  Result<void> visit_numpy_generator(const PickleNode& node, Keep keep);
  Result<void> visit_sharded(const PickleNode& node, Keep keep);
  Result<void> visit_list(PickleItems items, Keep keep);
  Result<void> visit_set(PickleItems items, Keep keep);
  Result<void> visit_mapping(const PickleNode& node, Keep keep);
  Result<void> visit_pairs(std::span<const PicklePair> pairs, Keep keep);
  Result<void> visit_states(PickleItems states, Keep keep);
  Result<void> back_reference(const PickleNode& node, Keep keep);
  std::optional<Node> simple_call(const PickleNode& node, const std::string& name);
  std::vector<bool> overwritten(std::span<const PicklePair> pairs);
  Result<void> emit(Node node, Keep keep);

  const TorchContext& context_;
  TorchBudget budget_;
  TorchObjects objects_;
  std::vector<const PickleNode*> open_;  // from the root to the node being visited
  std::string path_;                     // of that node
  std::vector<std::string> local_shards_;
  std::size_t repeated_keys_ = 0;
};

}  // namespace ckptverify
