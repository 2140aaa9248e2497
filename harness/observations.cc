// A state as digests, whether a trainer told it or a reader found it on disk.

#include "harness/observations.h"

#include "ckptverify/checkpoint.h"

namespace ckptverify {
namespace {

std::string tensor_text(std::string_view dtype, const std::vector<std::uint64_t>& shape) {
  std::string text(dtype);
  text += '[';
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + ']';
}

StateItem item_of(const Node& node, const Digest& digest) {
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    return {.digest = digest,
            .text = tensor_text(dtype_name(tensor->dtype), tensor->shape),
            .is_tensor = true};
  }
  if (const auto* value = std::get_if<Value>(&node))
    return {.digest = digest, .text = value_text(*value)};
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    return {.digest = digest, .text = (*composite)->kind, .is_tensor = true};
  }
  return {.digest = digest, .text = {}};
}

}  // namespace

namespace {

/// The first class in a node that is not modelled; empty if there is none.
std::string opaque_class(const Node& node) {
  if (const auto* opaque = std::get_if<Opaque>(&node)) return opaque->type;
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node))
    for (const auto& [name, part] : (*composite)->parts)
      if (std::string type = opaque_class(part); !type.empty()) return type;
  return {};
}

}  // namespace

std::map<std::string, std::vector<std::string>> opaque_objects(const Checkpoint& checkpoint) {
  std::map<std::string, std::vector<std::string>> objects;
  for (const Entry& entry : checkpoint.entries) {
    const std::string type = opaque_class(entry.node);
    if (type.empty()) continue;
    objects[component_label(entry)].push_back(std::string(relative_path(entry)) + " (" + type +
                                              ")");
  }
  return objects;
}

StateDigests state_digests(const StateEvent& event) {
  StateDigests digests;
  for (const auto& [component, state] : event.components) {
    auto& items = digests[component];
    for (const StateEntry& entry : state.entries) {
      const bool is_tensor = !entry.dtype.empty();
      items[entry.path] = {
          .digest = entry.digest,
          .text = is_tensor ? tensor_text(entry.dtype, entry.shape) : std::string(),
          .is_tensor = is_tensor};
    }
  }
  return digests;
}

StateDigests state_digests(const Checkpoint& checkpoint, const Fingerprint& fingerprint) {
  CKPTVERIFY_ASSERT(fingerprint.entries.size() == checkpoint.entries.size());
  StateDigests digests;
  for (std::size_t index = 0; index < checkpoint.entries.size(); ++index) {
    const std::optional<Digest>& digest = fingerprint.entries[index];
    if (!digest) continue;  // of a class that we do not model
    const Entry& entry = checkpoint.entries[index];
    StateItem& item = digests[component_label(entry)][std::string(relative_path(entry))];
    item = item_of(entry.node, *digest);
    item.root = entry.path.substr(0, entry.root_size);
  }
  return digests;
}

}  // namespace ckptverify
