// The elements of one tensor: a line for up to eight neighbours of the last dimension.
#include <algorithm>
#include <iostream>

#include "src/cli/inspect_output.h"

namespace ckptverify::cli {
namespace {

constexpr std::uint64_t kNeighboursMax = 8;  // as many floats as a line of 100 columns holds

Result<const Tensor*> tensor_of(const Entry& entry) {
  const auto* tensor = std::get_if<Tensor>(&entry.node);
  if (tensor != nullptr && !tensor->absent) return tensor;
  return Error{ErrorKind::kUsage, "its elements cannot be shown; found no plain tensor with data",
               entry.path};
}

/// Row-major index of an element, one number a dimension.
std::vector<std::uint64_t> index_of(const std::vector<std::uint64_t>& shape, std::uint64_t flat) {
  std::vector<std::uint64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return index;
}

std::string index_text(const std::vector<std::uint64_t>& index, std::uint64_t neighbours) {
  std::string text = "[";
  for (std::size_t d = 0; d < index.size(); ++d) {
    text += (d == 0 ? "" : ", ") + std::to_string(index[d]);
    if (d + 1 == index.size() && neighbours > 1) {
      text += ".." + std::to_string(index[d] + neighbours - 1);
    }
  }
  return text + "]";
}

/// A number or a truth value where JSON has it; what is not finite and what is complex stays text.
Json element_json(const std::string& text) {
  auto parsed = Json::parse(text);
  return parsed ? *std::move(parsed) : Json(text);
}

}  // namespace

Result<void> print_values(const Checkpoint& checkpoint, const Entry& entry, std::uint64_t limit) {
  CKPTVERIFY_TRY(const Tensor* tensor, tensor_of(entry));
  CKPTVERIFY_TRY(const LogicalBytes bytes, logical_bytes(checkpoint, *tensor));
  const std::uint64_t size = dtype_size(tensor->dtype);
  const std::uint64_t count = bytes.view().size() / size;
  const std::uint64_t shown = limit == 0 ? count : std::min(count, limit);
  const std::uint64_t row =
      tensor->shape.empty() ? 1 : std::max<std::uint64_t>(tensor->shape.back(), 1);
  std::cout << plain_text(entry.path) << "  " << dtype_name(tensor->dtype) << ' '
            << shape_text(tensor->shape) << "  " << size_text(bytes.view().size()) << '\n';
  for (std::uint64_t flat = 0; flat < shown;) {
    const std::uint64_t neighbours = std::min({kNeighboursMax, row - flat % row, shown - flat});
    std::cout << "  " << index_text(index_of(tensor->shape, flat), neighbours) << ' ';
    for (std::uint64_t i = 0; i < neighbours; ++i) {
      std::cout << ' '
                << element_text(tensor->dtype, bytes.view().subspan((flat + i) * size, size));
    }
    std::cout << '\n';
    flat += neighbours;
  }
  if (shown < count) {
    std::cout << "  ... and " << count - shown << " more elements: --limit 0 prints all\n";
  }
  return {};
}

Result<Json> values_json(const Checkpoint& checkpoint, const Entry& entry, std::uint64_t limit) {
  CKPTVERIFY_TRY(const Tensor* tensor, tensor_of(entry));
  CKPTVERIFY_TRY(const LogicalBytes bytes, logical_bytes(checkpoint, *tensor));
  const std::uint64_t size = dtype_size(tensor->dtype);
  const std::uint64_t count = bytes.view().size() / size;
  const std::uint64_t shown = limit == 0 ? count : std::min(count, limit);
  Json::Array elements;
  for (std::uint64_t i = 0; i < shown; ++i) {
    elements.push_back(
        element_json(element_text(tensor->dtype, bytes.view().subspan(i * size, size))));
  }
  return Json(Json::Object{{"path", entry.path},
                           {"dtype", dtype_name(tensor->dtype)},
                           {"shape", Json::Array(tensor->shape.begin(), tensor->shape.end())},
                           {"count", count},
                           {"elements", std::move(elements)}});
}

}  // namespace ckptverify::cli
