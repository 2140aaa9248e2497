// The work list: first the tensors that must be gathered, which take longest, then the leaves of
// those that need not be.
#include "src/tensor_scan.h"

#include <algorithm>
#include <limits>

#include "src/leaves.h"
#include "src/parallel.h"

namespace ckptverify {
namespace {

struct Work {
  std::size_t tensor = 0;
  Bytes leaf;                // of a tensor that is stored as read
  std::uint64_t offset = 0;  // of the leaf
  bool gather = false;
};

/// Appends the leaves of a tensor that is stored as it is read.
void plan_leaves(std::size_t tensor, Bytes bytes, std::vector<Work>& works) {
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += kLeafSize) {
    const std::uint64_t size = std::min<std::uint64_t>(kLeafSize, bytes.size() - offset);
    works.push_back({.tensor = tensor, .leaf = bytes.subspan(offset, size), .offset = offset});
  }
}

void visit_all(std::size_t tensor, Bytes bytes, const std::function<void(const Leaf&)>& visit) {
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += kLeafSize) {
    const std::uint64_t size = std::min<std::uint64_t>(kLeafSize, bytes.size() - offset);
    visit({.tensor = tensor, .offset = offset, .bytes = bytes.subspan(offset, size)});
  }
}

/// A dimension of one element may have any stride.
bool is_row_major(const Piece& piece) {
  const std::vector<std::int64_t> expected = contiguous_strides(piece.shape);
  for (std::size_t d = 0; d < piece.shape.size(); ++d) {
    if (piece.shape[d] > 1 && piece.strides[d] != expected[d]) return false;
  }
  return true;
}

void add_tensors(const Entry& entry, const Node& node, const std::string& path,
                 std::vector<NamedTensor>& found) {
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    if (!tensor->absent && logical_size(*tensor) > 0) found.push_back({tensor, &entry, path});
  } else if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    for (const auto& [name, part] : (*composite)->parts) {
      add_tensors(entry, part, path + "." + name, found);
    }
  }
}

}  // namespace

bool stored_as_read(const Tensor& tensor) {
  if (tensor.pieces.size() != 1 || tensor.conjugate || tensor.negative) return false;
  if (tensor.byte_order != ByteOrder::kLittle && dtype_size(tensor.dtype) != 1) return false;
  const Piece& piece = tensor.pieces.front();
  return piece.run.decode == nullptr && piece.shape == tensor.shape && is_row_major(piece);
}

std::vector<std::optional<Error>> scan_leaves(const Checkpoint& checkpoint,
                                              std::span<const Tensor* const> tensors,
                                              Threads threads,
                                              const std::function<void(const Leaf&)>& visit) {
  std::vector<std::optional<Error>> errors(tensors.size());
  std::vector<LogicalBytes> views;  // what the leaves of the plan point into
  std::vector<Work> gathered;
  std::vector<Work> works;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->absent) continue;
    if (!stored_as_read(*tensors[i])) {
      gathered.push_back({.tensor = i, .leaf = {}, .gather = true});
    } else if (auto bytes = logical_bytes(checkpoint, *tensors[i])) {
      plan_leaves(i, views.emplace_back(*std::move(bytes)).view(), works);
    } else {
      errors[i] = std::move(bytes).error();
    }
  }
  works.insert(works.begin(), gathered.begin(), gathered.end());
  for_each_index(works.size(), threads, [&](std::size_t index) {
    const Work& work = works[index];
    if (!work.gather) {
      visit({.tensor = work.tensor, .offset = work.offset, .bytes = work.leaf});
    } else if (auto bytes = logical_bytes(checkpoint, *tensors[work.tensor])) {
      visit_all(work.tensor, bytes->view(), visit);
    } else {
      errors[work.tensor] = std::move(bytes).error();
    }
  });
  return errors;
}

std::vector<NamedTensor> tensors_with_data(const Checkpoint& checkpoint) {
  std::vector<NamedTensor> found;
  for (const Entry& entry : checkpoint.entries) add_tensors(entry, entry.node, entry.path, found);
  return found;
}

}  // namespace ckptverify
