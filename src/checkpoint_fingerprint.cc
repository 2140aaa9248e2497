// The fingerprint of a whole checkpoint: what a pass over the bytes made of every tensor's leaves,
// joined to the digests of entries, components and the whole.
#include "src/checkpoint_fingerprint.h"

#include <algorithm>
#include <unordered_map>

#include "src/checksums.h"
#include "src/leaves.h"

namespace ckptverify {
namespace {

bool same_elements(const Tensor& a, const Tensor& b) {
  const auto same_piece = [](const Piece& p, const Piece& q) {
    return p.offset == q.offset && p.shape == q.shape && p.strides == q.strides &&
           p.first_element == q.first_element && p.run.file == q.run.file &&
           p.run.offset == q.run.offset && p.run.stored_size == q.run.stored_size &&
           p.run.size == q.run.size && p.run.decode == q.run.decode && p.run.owned == q.run.owned;
  };
  return a.dtype == b.dtype && a.shape == b.shape && a.byte_order == b.byte_order &&
         a.conjugate == b.conjugate && a.negative == b.negative && a.absent == b.absent &&
         a.flattened == b.flattened &&
         std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(), same_piece);
}

/// The tensor whose bytes are read for this entry: for an alias with the very same elements, the
/// one that it is an alias of.
const Tensor* read_for(const Checkpoint& checkpoint, const NamedTensor& named) {
  if (named.entry->alias_of.empty()) return named.tensor;
  const Entry* first = find_entry(checkpoint, named.entry->alias_of);
  const Tensor* tensor = first == nullptr ? nullptr : std::get_if<Tensor>(&first->node);
  return tensor != nullptr && same_elements(*tensor, *named.tensor) ? tensor : named.tensor;
}

using TensorDigests = std::unordered_map<const Tensor*, Digest>;

/// None for an opaque node.
std::optional<Digest> digest_of(const Node& node, const TensorDigests& digests) {
  if (const auto* value = std::get_if<Value>(&node)) return value_digest(*value);
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    const std::string_view dtype = dtype_name(tensor->dtype);
    if (tensor->absent) return absent_tensor_digest(dtype, tensor->shape);
    const auto found = digests.find(tensor);
    return found != digests.end() ? found->second : tensor_digest(dtype, tensor->shape, {});
  }
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    std::vector<std::pair<std::string, Digest>> parts;
    for (const auto& [name, part] : (*composite)->parts) {
      if (auto digest = digest_of(part, digests)) parts.emplace_back(name, *digest);
    }
    return composite_digest((*composite)->kind, std::move(parts));
  }
  return std::nullopt;
}

std::uint64_t tensor_bytes(const Node& node) {
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    return tensor->absent ? 0 : logical_size(*tensor);
  }
  std::uint64_t size = 0;
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    for (const auto& [name, part] : (*composite)->parts) size += tensor_bytes(part);
  }
  return size;
}

/// What a component's two digests are made of.
struct Members {
  std::vector<std::pair<std::string, Digest>> tensors;
  std::vector<std::pair<std::string, Digest>> all;
  std::uint64_t tensor_bytes = 0;
};

Fingerprint joined(const Checkpoint& checkpoint, const TensorDigests& digests) {
  Fingerprint result;
  result.entries.reserve(checkpoint.entries.size());
  std::map<std::string, Members> members;
  const Entry* last = nullptr;  // neighbours are of one component
  Members* of_last = nullptr;
  for (const Entry& entry : checkpoint.entries) {
    const auto& digest = result.entries.emplace_back(digest_of(entry.node, digests));
    if (!digest) continue;
    if (last == nullptr || last->component != entry.component || last->rank != entry.rank) {
      of_last = &members[component_label(entry)];
    }
    last = &entry;
    Members& component = *of_last;
    component.all.emplace_back(relative_path(entry), *digest);
    if (!std::holds_alternative<Value>(entry.node))
      component.tensors.push_back(component.all.back());
    component.tensor_bytes += tensor_bytes(entry.node);
  }
  std::vector<std::pair<std::string, Digest>> components;
  for (auto& [label, component] : members) {
    const std::uint64_t count = component.all.size();
    const Digest all = component_digest(std::move(component.all));
    result.components[label] = {.tensors = component_digest(std::move(component.tensors)),
                                .all = all,
                                .entry_count = count,
                                .tensor_bytes = component.tensor_bytes};
    components.emplace_back(label, all);
  }
  result.whole = checkpoint_digest(std::move(components));
  return result;
}

}  // namespace

TensorsToRead tensors_to_read(const Checkpoint& checkpoint) {
  TensorsToRead result{.named = tensors_with_data(checkpoint)};
  for (std::size_t i = 0; i < result.named.size(); ++i) {
    if (read_for(checkpoint, result.named[i]) != result.named[i].tensor) continue;
    result.tensors.push_back(result.named[i].tensor);
    result.names.push_back(i);
  }
  return result;
}

Result<Fingerprint> fingerprint_of(const Checkpoint& checkpoint, const TensorsToRead& read,
                                   const Pass& pass) {
  TensorDigests digests;
  for (std::size_t i = 0; i < read.tensors.size(); ++i) {
    const Tensor& tensor = *read.tensors[i];
    if (pass.errors[i]) return Error(*pass.errors[i]).about(read.named[read.names[i]].path);
    digests[&tensor] = digest_of_leaves(dtype_name(tensor.dtype), tensor.shape,
                                        logical_size(tensor), pass.leaves[i]);
  }
  for (const NamedTensor& one : read.named)
    digests[one.tensor] = digests[read_for(checkpoint, one)];
  return joined(checkpoint, digests);
}

Result<Fingerprint> fingerprint(const Checkpoint& checkpoint, Threads threads) {
  const TensorsToRead read = tensors_to_read(checkpoint);
  return fingerprint_of(checkpoint, read,
                        pass_over_bytes(checkpoint, {.tensors = read.tensors, .threads = threads}));
}

Result<Hashes> hash_checkpoint(const Checkpoint& checkpoint, FileDigests files, Threads threads) {
  const TensorsToRead read = tensors_to_read(checkpoint);
  const bool of_files = files == FileDigests::kYes;
  const Pass pass = pass_over_bytes(
      checkpoint,
      {.tensors = read.tensors, .checksums = true, .files = of_files, .threads = threads});
  CKPTVERIFY_TRY(Fingerprint digests, fingerprint_of(checkpoint, read, pass));
  Hashes hashes{.fingerprint = std::move(digests), .files = {}};
  for (Finding& finding : checksum_findings(checkpoint, pass))
    if (finding.status != Status::kPass && finding.status != Status::kNotObserved)
      hashes.damaged.push_back(std::move(finding));
  if (!of_files) return hashes;
  for (std::size_t i = 0; i < checkpoint.files.size(); ++i) {
    hashes.files.push_back(
        file_digest_of_leaves(checkpoint.files[i].bytes().size(), pass.file_leaves[i]));
  }
  return hashes;
}

}  // namespace ckptverify
