// Source: torch/_utils.py, torch/storage.py, torch/csrc/jit/serialization/pickler.cpp.
#include "formats/encoding/torch_tensor.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "formats/encoding/numpy_objects.h"
#include "formats/encoding/pickle_globals.h"

namespace ckptverify {
namespace {

// Tensors nest at most in a parameter's, a sparse tensor's and a subclass's arguments.
constexpr unsigned kTensorDepthMax = 16;
// A view whose strides repeat elements can claim any size; one this large, larger than its storage,
// is a claim and no state.
constexpr std::uint64_t kRepeatedBytesMax = 1ULL << 34;

Error fault(const PickleNode& node, CauseKind cause, std::string message) {
  return {.message = std::move(message), .offset = node.offset, .cause = Cause{cause}};
}

Error at(const PickleNode& node, CauseKind cause, Error error) {
  if (!error.offset) error.offset = node.offset;
  if (!error.cause) error.cause = Cause{cause};
  return error;
}

Result<const PickleNode*> needed(const PickleNode& call, std::size_t index) {
  const PickleNode* found = argument(call, index);
  if (found == nullptr) {
    return fault(call, CauseKind::kBitrot,
                 callee(call) + " has too few arguments; found at most " + std::to_string(index) +
                     ", expected more");
  }
  return found;
}

bool truth_in(const PickleNode& dict, std::string_view key) {
  for (const auto& [name, value] : dict.pairs) {
    const auto* text = name->string();
    if (text != nullptr && *text == key) return value->boolean() != nullptr && *value->boolean();
  }
  return false;
}

Node composite(std::string kind, std::vector<std::pair<std::string, Node>> parts) {
  return std::make_shared<const Composite>(Composite{std::move(kind), std::move(parts)});
}

/// What the functions have in common: where the elements are.
struct StridedArguments {
  const PickleNode* storage = nullptr;
  const PickleNode* offset = nullptr;
  const PickleNode* size = nullptr;
  const PickleNode* stride = nullptr;
  std::optional<DType> dtype = {};  // where the storage is untyped
};

class TensorReading {
 public:
  explicit TensorReading(const TorchContext& context) : context_(context) {}
  Result<Node> read(const PickleNode& node);

 private:
  Result<Node> read_call(const PickleNode& call, const std::string& name);
  Result<Tensor> strided(const PickleNode& call, const StridedArguments& arguments);
  Result<StridedArguments> common(const PickleNode& call);
  Result<Node> whole_storage(const PickleNode& node);
  Result<Node> with_metadata(const PickleNode& call, const StridedArguments& arguments,
                             std::size_t metadata_index);
  Result<Node> quantized(const PickleNode& call);
  Result<Node> sparse(const PickleNode& call);
  Result<Node> nested(const PickleNode& call);
  Result<Node> without_bytes(const PickleNode& call, std::size_t first);

  const TorchContext& context_;
  unsigned depth_ = 0;
};

Result<Tensor> TensorReading::strided(const PickleNode& call, const StridedArguments& arguments) {
  CKPTVERIFY_TRY(const auto reference, storage_reference(*arguments.storage));
  const auto dtype = arguments.dtype ? arguments.dtype : reference.dtype;
  if (!dtype) {
    return fault(call, CauseKind::kPickleDep, "a tensor of an untyped storage has no dtype");
  }
  CKPTVERIFY_TRY(const auto offset, natural_of(*arguments.offset));
  CKPTVERIFY_TRY(auto shape, dimensions_of(*arguments.size));
  CKPTVERIFY_TRY(const auto strides, dimensions_of(*arguments.stride));
  Tensor tensor{.dtype = *dtype, .shape = shape, .pieces = {}, .byte_order = context_.byte_order};
  if (reference.location == "meta") {
    tensor.absent = true;
  } else {
    CKPTVERIFY_TRY(auto run, context_.find(reference));
    const std::size_t rank = shape.size();
    Piece piece{.offset = std::vector<std::uint64_t>(rank, 0),
                .shape = std::move(shape),
                .strides = std::vector<std::int64_t>(strides.begin(), strides.end()),
                .first_element = offset,
                .run = std::move(run)};
    tensor.pieces.push_back(std::move(piece));
  }
  if (auto bounds = check_bounds(tensor); !bounds) {
    return at(call, CauseKind::kLayout, std::move(bounds).error());
  }
  const std::uint64_t logical = logical_size(tensor);
  if (!tensor.absent && logical > reference.size && logical > kRepeatedBytesMax) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a tensor repeats its elements; found " + std::to_string(logical) +
                            " bytes of " + std::to_string(reference.size) +
                            " stored, expected at most " + std::to_string(kRepeatedBytesMax),
                 .offset = call.offset};
  }
  return tensor;
}

Result<StridedArguments> TensorReading::common(const PickleNode& call) {
  StridedArguments arguments;
  CKPTVERIFY_TRY(arguments.storage, needed(call, 0));
  CKPTVERIFY_TRY(arguments.offset, needed(call, 1));
  CKPTVERIFY_TRY(arguments.size, needed(call, 2));
  CKPTVERIFY_TRY(arguments.stride, needed(call, 3));
  return arguments;
}

Result<Node> TensorReading::whole_storage(const PickleNode& node) {
  CKPTVERIFY_TRY(const auto reference, storage_reference(node));
  Tensor tensor{.dtype = reference.dtype.value_or(DType::kUint8),
                .shape = {reference.element_count},
                .pieces = {}};
  if (reference.location == "meta") {
    tensor.absent = true;
    return Node(std::move(tensor));
  }
  CKPTVERIFY_TRY(auto run, context_.find(reference));
  tensor = contiguous_tensor(tensor.dtype, tensor.shape, std::move(run));
  tensor.byte_order = context_.byte_order;
  if (auto bounds = check_bounds(tensor); !bounds) {
    return at(node, CauseKind::kLayout, std::move(bounds).error());
  }
  return Node(std::move(tensor));
}

Result<Node> TensorReading::with_metadata(const PickleNode& call, const StridedArguments& arguments,
                                          std::size_t metadata_index) {
  CKPTVERIFY_TRY(Tensor tensor, strided(call, arguments));
  if (const PickleNode* metadata = argument(call, metadata_index)) {
    tensor.conjugate = truth_in(*metadata, "conj");
    tensor.negative = truth_in(*metadata, "neg");
  }
  return Node(std::move(tensor));
}

/// qparams: (scheme, scale, zero point), or (scheme, scales, zero points, axis).
Result<Node> TensorReading::quantized(const PickleNode& call) {
  CKPTVERIFY_TRY(const auto arguments, common(call));
  CKPTVERIFY_TRY(Tensor tensor, strided(call, arguments));
  CKPTVERIFY_TRY(const PickleNode* parameters, needed(call, 4));
  std::vector<std::pair<std::string, Node>> parts = {{"elements", std::move(tensor)}};
  constexpr std::array<std::string_view, 4> kNames = {"scheme", "scale", "zero_point", "axis"};
  if (parameters->items.size() < 3 || parameters->items.size() > kNames.size()) {
    return fault(call, CauseKind::kTensorRep, "a quantized tensor has no quantizer that we know");
  }
  for (std::size_t i = 0; i < parameters->items.size(); ++i) {
    const PickleNode& part = *parameters->items[i];
    if (part.kind == PickleKind::kGlobal) {
      parts.emplace_back(kNames[i], Value(qualified_name(part)));
    } else if (is_tensor(part)) {
      CKPTVERIFY_TRY(auto inner, read(part));
      parts.emplace_back(kNames[i], std::move(inner));
    } else {
      parts.emplace_back(kNames[i], part.value);
    }
  }
  return composite("quantized", std::move(parts));
}

/// (layout, data): data is (indices, values, size[, coalesced]) or (compressed, plain, values,
/// size).
Result<Node> TensorReading::sparse(const PickleNode& call) {
  CKPTVERIFY_TRY(const PickleNode* layout, needed(call, 0));
  CKPTVERIFY_TRY(const PickleNode* data, needed(call, 1));
  const PickleNode* spelled = argument(*layout, 0);
  std::string kind = spelled != nullptr && spelled->string() != nullptr ? *spelled->string()
                                                                        : qualified_name(*layout);
  if (kind.starts_with("torch.")) kind.erase(0, 6);
  std::vector<std::pair<std::string, Node>> parts;
  const bool coordinates = kind == "sparse_coo";
  const std::size_t tensor_count = coordinates ? 2 : 3;
  if (data->items.size() <= tensor_count) {
    return fault(call, CauseKind::kTensorRep,
                 "a sparse tensor has too few parts; found " + std::to_string(data->items.size()));
  }
  constexpr std::array<std::string_view, 2> kCoordinateNames = {"indices", "values"};
  constexpr std::array<std::string_view, 3> kCompressedNames = {"compressed_indices",
                                                                "plain_indices", "values"};
  for (std::size_t i = 0; i < tensor_count; ++i) {
    CKPTVERIFY_TRY(auto part, read(*data->items[i]));
    parts.emplace_back(coordinates ? kCoordinateNames[i] : kCompressedNames[i], std::move(part));
  }
  CKPTVERIFY_TRY(const auto shape, dimensions_of(*data->items[tensor_count]));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    parts.emplace_back("size." + std::to_string(d), Value(static_cast<std::int64_t>(shape[d])));
  }
  if (coordinates && data->items.size() > 3) {
    parts.emplace_back("coalesced", data->items[3]->value);
  }
  return composite(std::move(kind), std::move(parts));
}

Result<Node> TensorReading::nested(const PickleNode& call) {
  std::vector<std::pair<std::string, Node>> parts;
  constexpr std::array<std::string_view, 4> kNames = {"buffer", "sizes", "strides", "offsets"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    CKPTVERIFY_TRY(const PickleNode* part, needed(call, i));
    CKPTVERIFY_TRY(auto tensor, read(*part));
    parts.emplace_back(kNames[i], std::move(tensor));
  }
  return composite("nested", std::move(parts));
}

/// (dtype, size, ...) from argument `first` on: a tensor without data.
Result<Node> TensorReading::without_bytes(const PickleNode& call, std::size_t first) {
  CKPTVERIFY_TRY(const PickleNode* type, needed(call, first));
  CKPTVERIFY_TRY(const PickleNode* size, needed(call, first + 1));
  const auto dtype = torch_dtype(qualified_name(*type));
  if (!dtype) return fault(*type, CauseKind::kTensorRep, "a tensor has an unknown dtype");
  CKPTVERIFY_TRY(auto shape, dimensions_of(*size));
  return Node(Tensor{.dtype = *dtype, .shape = std::move(shape), .pieces = {}, .absent = true});
}

Result<Node> TensorReading::read_call(const PickleNode& call, const std::string& name) {
  if (name == "torch._utils._rebuild_tensor_v2" || name == "torch._utils._rebuild_tensor") {
    CKPTVERIFY_TRY(const auto arguments, common(call));
    return with_metadata(call, arguments, 6);
  }
  if (name == "torch._utils._rebuild_tensor_v3") {
    CKPTVERIFY_TRY(auto arguments, common(call));
    CKPTVERIFY_TRY(const PickleNode* type, needed(call, 6));
    arguments.dtype = torch_dtype(qualified_name(*type));
    if (!arguments.dtype) {
      return fault(*type, CauseKind::kTensorRep,
                   "a tensor has an unknown dtype; found " + qualified_name(*type));
    }
    return with_metadata(call, arguments, 7);
  }
  if (name == "torch._utils._rebuild_qtensor") return quantized(call);
  if (name == "torch._utils._rebuild_sparse_tensor" ||
      name == "torch._utils._rebuild_sparse_csr_tensor") {
    return sparse(call);
  }
  if (name == "torch._utils._rebuild_nested_tensor") return nested(call);
  if (name == "torch._utils._rebuild_meta_tensor_no_storage") return without_bytes(call, 0);
  if (name == "torch._utils._rebuild_wrapper_subclass") return without_bytes(call, 1);
  // A parameter, or a copy from a device that has no storage of its own: the tensor inside.
  CKPTVERIFY_TRY(const PickleNode* inner, needed(call, 0));
  return read(*inner);
}

Result<Node> TensorReading::read(const PickleNode& node) {
  if (depth_ >= kTensorDepthMax) {
    return fault(node, CauseKind::kTensorRep, "tensors in tensors are nested too deep");
  }
  ++depth_;
  Result<Node> result = Node();
  if (is_storage(node)) {
    result = whole_storage(node);
  } else if (is_numpy_array(node)) {
    result = numpy_array(node);
  } else if (is_tensor(node)) {
    result = read_call(node, callee(node));
  } else {
    result = fault(node, CauseKind::kTensorRep, "no tensor where one is expected");
  }
  --depth_;
  return result;
}

}  // namespace

bool is_tensor(const PickleNode& node) {
  if (is_storage(node)) return true;
  if (node.kind != PickleKind::kCall) return false;
  static constexpr std::array<std::string_view, 14> kFunctions = {
      "_rebuild_tensor",
      "_rebuild_tensor_v2",
      "_rebuild_tensor_v3",
      "_rebuild_parameter",
      "_rebuild_parameter_with_state",
      "_rebuild_qtensor",
      "_rebuild_sparse_tensor",
      "_rebuild_sparse_csr_tensor",
      "_rebuild_nested_tensor",
      "_rebuild_meta_tensor_no_storage",
      "_rebuild_wrapper_subclass",
      "_rebuild_device_tensor_from_numpy",
      "_rebuild_device_tensor_from_cpu_tensor",
      "_rebuild_xla_tensor"};
  const std::string name = callee(node);
  constexpr std::string_view kModule = "torch._utils.";
  return name.starts_with(kModule) &&
         std::find(kFunctions.begin(), kFunctions.end(),
                   std::string_view(name).substr(kModule.size())) != kFunctions.end();
}

Result<Node> rebuild_tensor(const PickleNode& node, const TorchContext& context) {
  return TensorReading(context).read(node);
}

}  // namespace ckptverify
