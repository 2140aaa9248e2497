// Which tensors have bytes, and which of those have them as they are read.
#include "src/tensor_scan.h"

namespace ckptverify {
namespace {

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
  return piece.run.decode == nullptr && piece.shape == tiled_shape(tensor) && is_row_major(piece);
}

std::vector<NamedTensor> tensors_with_data(const Checkpoint& checkpoint) {
  std::vector<NamedTensor> found;
  for (const Entry& entry : checkpoint.entries) add_tensors(entry, entry.node, entry.path, found);
  return found;
}

}  // namespace ckptverify
