// Source: deepspeed/runtime/engine.py (_get_zero_param_shapes, _get_shared_params,
// _common_checkpoint_state).
#include "formats/container/deepspeed_layout.h"

#include <string_view>

#include "formats/container/torch_archive.h"
#include "formats/container/torch_stream.h"
#include "formats/encoding/pickle.h"
#include "formats/encoding/torch_tensor.h"

namespace ckptverify {
namespace {

const PickleNode* member(const PickleNode& dict, std::string_view key) {
  for (const auto& [name, value] : dict.pairs())
    if (name->string() == key) return value;
  return nullptr;
}

Error fault(const PickleNode& node, const std::string& message) {
  return {.message = message, .offset = node.offset, .cause = Cause{CauseKind::kBitrot, {}}};
}

Result<std::vector<DeepspeedParameter>> parameters_of(const PickleNode& dict) {
  std::vector<DeepspeedParameter> parameters;
  for (const auto& [name, shape] : dict.pairs()) {
    const auto text = name->string();
    if (!text) return fault(dict, "a parameter's name is no string");
    CKPTVERIFY_TRY(auto dimensions, dimensions_of(*shape));
    const auto count = checked_product(dimensions);
    if (!count)
      return fault(*shape,
                   "the size of parameter '" + std::string(*text) + "' does not fit 64 bits");
    parameters.push_back({std::string(*text), std::move(dimensions), *count});
  }
  return parameters;
}

Result<DeepspeedLayout> layout_of(const PickleNode& root) {
  DeepspeedLayout layout;
  if (const PickleNode* groups = member(root, "param_shapes")) {
    for (const PickleNode* group : groups->items()) {
      CKPTVERIFY_TRY(auto parameters, parameters_of(*group));
      layout.groups.push_back(std::move(parameters));
    }
  }
  if (const PickleNode* frozen = member(root, "frozen_param_shapes")) {
    CKPTVERIFY_TRY(layout.frozen, parameters_of(*frozen));
  }
  if (const PickleNode* shared = member(root, "shared_params")) {
    for (const auto& [alias, kept] : shared->pairs())
      if (alias->string() && kept->string())
        layout.shared.emplace_back(*alias->string(), *kept->string());
  }
  return layout;
}

}  // namespace

Result<DeepspeedLayout> read_deepspeed_layout(const Source& file) {
  if (is_torch_stream(file.bytes())) {
    CKPTVERIFY_TRY(const auto stream, open_torch_stream({.bytes = file.bytes()}, file.name()));
    return layout_of(stream.tree.root());
  }
  if (torch_archive_kind(file.bytes()) != TorchArchiveKind::kTorchSave)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "the order of its parameters is read from files of torch.save alone"};
  CKPTVERIFY_TRY(auto archive, open_torch_archive({.bytes = file.bytes()}, file.name()));
  CKPTVERIFY_TRY(const auto tree, read_archive_tree(archive));
  return layout_of(tree.root());
}

}  // namespace ckptverify
