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
constexpr std::string_view kModule = "torch._utils.";

Error fault(std::uint64_t offset, CauseKind cause, std::string message) {
  return {.message = std::move(message), .offset = offset, .cause = Cause{cause}};
}

Error at(std::uint64_t offset, CauseKind cause, Error error) {
  if (!error.offset) error.offset = offset;
  if (!error.cause) error.cause = Cause{cause};
  return error;
}

Result<const PickleNode*> needed(const TorchCall& call, std::size_t index) {
  if (index >= call.arguments.size()) {
    return fault(call.offset, CauseKind::kBitrot,
                 call.name + " has too few arguments; found " +
                     std::to_string(call.arguments.size()) + ", expected at least " +
                     std::to_string(index + 1));
  }
  return static_cast<const PickleNode*>(call.arguments[index]);
}

bool truth_in(const PickleNode& dict, std::string_view key) {
  for (const auto& [name, value] : dict.pairs()) {
    if (name->string() == key) return value->boolean().value_or(false);
  }
  return false;
}

TorchCall call_of(const PickleNode& node) {
  const PickleNode& arguments = *node.items()[1];
  return {.name = callee(node),
          .arguments = arguments.kind == PickleKind::kTuple ? arguments.items() : PickleItems(),
          .offset = node.offset};
}

using Parts = std::vector<std::pair<std::string, Node>>;

Node composite(std::string kind, Parts parts) {
  return std::make_shared<const Composite>(Composite{std::move(kind), std::move(parts)});
}

/// The elements of a storage, wherever they are.
struct Elements {
  std::optional<DType> dtype = {};  // none: bytes
  std::uint64_t count = 0;
  std::uint64_t size = 0;       // bytes
  std::optional<Run> run = {};  // none on the meta device
  ByteOrder byte_order = ByteOrder::kLittle;
};

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
  Result<Node> read_call(const TorchCall& call);

 private:
  Result<Elements> elements(const PickleNode& storage);
  Result<Elements> nested_elements(const PickleNode& node);
  Result<Tensor> strided(const TorchCall& call, const StridedArguments& arguments);
  Result<StridedArguments> common(const TorchCall& call);
  Result<Node> whole_storage(const PickleNode& node);
  Result<Node> with_metadata(const TorchCall& call, const StridedArguments& arguments,
                             std::size_t metadata_index);
  Result<Node> quantized(const TorchCall& call);
  Result<Node> sparse(const TorchCall& call);
  Result<Parts> sparse_parts(const TorchCall& call, PickleItems data, bool coordinates);
  Result<Node> nested(const TorchCall& call);
  Result<Node> from_numpy(const TorchCall& call);
  Result<Node> without_bytes(const TorchCall& call, std::size_t first);

  const TorchContext& context_;
  unsigned depth_ = 0;
};

/// The one storage that a nested file holds.
Result<Elements> TensorReading::nested_elements(const PickleNode& node) {
  CKPTVERIFY_TRY(const auto file, nested_file(node, context_));
  const auto* tensor =
      file->entries.size() == 1 ? std::get_if<Tensor>(&file->entries[0].node) : nullptr;
  if (tensor == nullptr || tensor->shape.size() != 1 || tensor->pieces.size() > 1) {
    return fault(node.offset, CauseKind::kTensorRep,
                 "the file inside of a tensor holds no storage; found " +
                     std::to_string(file->entries.size()) + " objects, expected 1 storage");
  }
  Elements elements{.dtype = tensor->dtype,
                    .count = tensor->shape[0],
                    .size = logical_size(*tensor),
                    .byte_order = tensor->byte_order};
  if (!tensor->absent) elements.run = tensor->pieces[0].run;
  return elements;
}

Result<Elements> TensorReading::elements(const PickleNode& storage) {
  if (is_nested_file(storage)) return nested_elements(storage);
  CKPTVERIFY_TRY(const auto reference, storage_reference(storage));
  Elements elements{.dtype = reference.dtype,
                    .count = reference.element_count,
                    .size = reference.size,
                    .byte_order = context_.byte_order};
  if (reference.view) {
    elements.count = reference.view->element_count;
    elements.size = elements.count * (reference.dtype ? dtype_size(*reference.dtype) : 1);
  }
  if (reference.location == "meta") return elements;
  CKPTVERIFY_TRY(elements.run, context_.find(reference));
  return elements;
}

Result<Tensor> TensorReading::strided(const TorchCall& call, const StridedArguments& arguments) {
  CKPTVERIFY_TRY(auto elements, this->elements(*arguments.storage));
  const auto dtype = arguments.dtype ? arguments.dtype : elements.dtype;
  if (!dtype) {
    return fault(call.offset, CauseKind::kPickleDep, "a tensor of an untyped storage has no dtype");
  }
  CKPTVERIFY_TRY(const auto offset, natural_of(*arguments.offset));
  CKPTVERIFY_TRY(auto shape, dimensions_of(*arguments.size));
  CKPTVERIFY_TRY(const auto strides, dimensions_of(*arguments.stride));
  Tensor tensor{.dtype = *dtype, .shape = shape, .pieces = {}, .byte_order = elements.byte_order};
  if (!elements.run) {
    tensor.absent = true;
  } else {
    const std::size_t rank = shape.size();
    Piece piece{.offset = std::vector<std::uint64_t>(rank, 0),
                .shape = std::move(shape),
                .strides = std::vector<std::int64_t>(strides.begin(), strides.end()),
                .first_element = offset,
                .run = *std::move(elements.run)};
    tensor.pieces.push_back(std::move(piece));
  }
  if (auto bounds = check_bounds(tensor); !bounds) {
    return at(call.offset, CauseKind::kLayout, std::move(bounds).error());
  }
  const std::uint64_t logical = logical_size(tensor);
  if (!tensor.absent && logical > elements.size && logical > kRepeatedBytesMax) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a tensor repeats its elements; found " + std::to_string(logical) +
                            " bytes of " + std::to_string(elements.size) +
                            " stored, expected at most " + std::to_string(kRepeatedBytesMax),
                 .offset = call.offset};
  }
  return tensor;
}

Result<StridedArguments> TensorReading::common(const TorchCall& call) {
  StridedArguments arguments;
  CKPTVERIFY_TRY(arguments.storage, needed(call, 0));
  CKPTVERIFY_TRY(arguments.offset, needed(call, 1));
  CKPTVERIFY_TRY(arguments.size, needed(call, 2));
  CKPTVERIFY_TRY(arguments.stride, needed(call, 3));
  return arguments;
}

Result<Node> TensorReading::whole_storage(const PickleNode& node) {
  CKPTVERIFY_TRY(auto elements, this->elements(node));
  const DType dtype = elements.dtype.value_or(DType::kUint8);
  if (!elements.run) {
    return Node(Tensor{.dtype = dtype, .shape = {elements.count}, .pieces = {}, .absent = true});
  }
  Tensor tensor = contiguous_tensor(dtype, {elements.count}, *std::move(elements.run));
  tensor.byte_order = elements.byte_order;
  if (auto bounds = check_bounds(tensor); !bounds) {
    return at(node.offset, CauseKind::kLayout, std::move(bounds).error());
  }
  return Node(std::move(tensor));
}

Result<Node> TensorReading::with_metadata(const TorchCall& call, const StridedArguments& arguments,
                                          std::size_t metadata_index) {
  CKPTVERIFY_TRY(Tensor tensor, strided(call, arguments));
  if (metadata_index < call.arguments.size()) {
    tensor.conjugate = truth_in(*call.arguments[metadata_index], "conj");
    tensor.negative = truth_in(*call.arguments[metadata_index], "neg");
  }
  return Node(std::move(tensor));
}

/// qparams: (scheme, scale, zero point), or (scheme, scales, zero points, axis).
Result<Node> TensorReading::quantized(const TorchCall& call) {
  CKPTVERIFY_TRY(const auto arguments, common(call));
  CKPTVERIFY_TRY(Tensor tensor, strided(call, arguments));
  const std::vector<std::uint64_t> shape = tensor.shape;
  CKPTVERIFY_TRY(const PickleNode* parameters, needed(call, 4));
  Parts parts = {{"elements", std::move(tensor)}};
  constexpr std::array<std::string_view, 4> kNames = {"scheme", "scale", "zero_point", "axis"};
  const PickleItems given = parameters->items();
  if (given.size() < 3 || given.size() > kNames.size()) {
    return fault(call.offset, CauseKind::kTensorRep,
                 "a quantized tensor has no quantizer that we know");
  }
  const auto axis = given.size() == 4 ? given[3]->integer() : std::nullopt;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const PickleNode& part = *given[i];
    if (part.kind == PickleKind::kGlobal) {
      parts.emplace_back(kNames[i], Value(qualified_name(part)));
    } else if (is_tensor(part)) {
      CKPTVERIFY_TRY(auto inner, read(part));
      const auto* plain = std::get_if<Tensor>(&inner);
      const bool fits = plain != nullptr && axis && *axis >= 0 &&
                        static_cast<std::uint64_t>(*axis) < shape.size() &&
                        plain->shape == std::vector{shape[static_cast<std::size_t>(*axis)]};
      if (!fits) {
        return fault(part.offset, CauseKind::kTensorRep,
                     "a quantizer does not fit its tensor: it needs one " + std::string(kNames[i]) +
                         " for each channel of its axis");
      }
      parts.emplace_back(kNames[i], std::move(inner));
    } else {
      parts.emplace_back(kNames[i], part.value());
    }
  }
  return composite("quantized", std::move(parts));
}

/// The shape of a part that must be a plain tensor.
const std::vector<std::uint64_t>* shape_of(const Node& node) {
  const auto* tensor = std::get_if<Tensor>(&node);
  return tensor == nullptr ? nullptr : &tensor->shape;
}

Result<Parts> TensorReading::sparse_parts(const TorchCall& call, PickleItems data,
                                          bool coordinates) {
  constexpr std::array<std::string_view, 2> kCoordinateNames = {"indices", "values"};
  constexpr std::array<std::string_view, 3> kCompressedNames = {"compressed_indices",
                                                                "plain_indices", "values"};
  const std::size_t count = coordinates ? 2 : 3;
  Parts parts;
  for (std::size_t i = 0; i < count; ++i) {
    CKPTVERIFY_TRY(auto part, read(*data[i]));
    parts.emplace_back(coordinates ? kCoordinateNames[i] : kCompressedNames[i], std::move(part));
  }
  // One index for each value; the dimension that counts them is the last of the indices'.
  const auto* indices = shape_of(parts[count - 2].second);
  const auto* values = shape_of(parts[count - 1].second);
  const std::size_t batch = coordinates                              ? 0
                            : indices == nullptr || indices->empty() ? 0
                                                                     : indices->size() - 1;
  if (indices == nullptr || values == nullptr || indices->empty() || values->size() <= batch ||
      indices->back() != (*values)[batch]) {
    return fault(
        call.offset, CauseKind::kTensorRep,
        "a sparse tensor has another number of indices than of values; found " +
            std::to_string(indices == nullptr || indices->empty() ? 0 : indices->back()) +
            ", expected " +
            std::to_string(values == nullptr || values->size() <= batch ? 0 : (*values)[batch]));
  }
  return parts;
}

/// (layout, data): data is (indices, values, size[, coalesced]) or (compressed, plain, values,
/// size).
Result<Node> TensorReading::sparse(const TorchCall& call) {
  CKPTVERIFY_TRY(const PickleNode* layout, needed(call, 0));
  CKPTVERIFY_TRY(const PickleNode* data, needed(call, 1));
  const PickleNode* spelled = argument(*layout, 0);
  std::string kind = spelled != nullptr && spelled->string() ? std::string(*spelled->string())
                                                             : qualified_name(*layout);
  if (kind.starts_with("torch.")) kind.erase(0, 6);
  const bool coordinates = kind == "sparse_coo";
  const std::size_t tensor_count = coordinates ? 2 : 3;
  const PickleItems given = data->items();
  if (given.size() <= tensor_count) {
    return fault(call.offset, CauseKind::kTensorRep,
                 "a sparse tensor has too few parts; found " + std::to_string(given.size()) +
                     ", expected " + std::to_string(tensor_count + 1));
  }
  CKPTVERIFY_TRY(auto parts, sparse_parts(call, given, coordinates));
  CKPTVERIFY_TRY(const auto shape, dimensions_of(*given[tensor_count]));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    parts.emplace_back("size." + std::to_string(d), Value(static_cast<std::int64_t>(shape[d])));
  }
  if (coordinates && given.size() > 3) parts.emplace_back("coalesced", given[3]->value());
  return composite(std::move(kind), std::move(parts));
}

Result<Node> TensorReading::nested(const TorchCall& call) {
  Parts parts;
  constexpr std::array<std::string_view, 4> kNames = {"buffer", "sizes", "strides", "offsets"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    CKPTVERIFY_TRY(const PickleNode* part, needed(call, i));
    CKPTVERIFY_TRY(auto tensor, read(*part));
    parts.emplace_back(kNames[i], std::move(tensor));
  }
  return composite("nested", std::move(parts));
}

/// (dtype, size, ...) from argument `first` on: a tensor without data.
Result<Node> TensorReading::without_bytes(const TorchCall& call, std::size_t first) {
  CKPTVERIFY_TRY(const PickleNode* type, needed(call, first));
  CKPTVERIFY_TRY(const PickleNode* size, needed(call, first + 1));
  const auto dtype = torch_dtype(qualified_name(*type));
  if (!dtype) return fault(type->offset, CauseKind::kTensorRep, "a tensor has an unknown dtype");
  CKPTVERIFY_TRY(auto shape, dimensions_of(*size));
  Tensor tensor{.dtype = *dtype, .shape = std::move(shape), .pieces = {}, .absent = true};
  if (auto bounds = check_bounds(tensor); !bounds) {
    return at(call.offset, CauseKind::kLayout, std::move(bounds).error());
  }
  return Node(std::move(tensor));
}

/// float32 elements as bfloat16, to nearest, ties to even.
Tensor rounded(const Tensor& wide) {
  const std::vector<std::byte>& from = *wide.pieces[0].run.owned;
  auto narrow = std::make_shared<std::vector<std::byte>>();
  narrow->reserve(from.size() / 2);
  for (std::size_t i = 0; i + 4 <= from.size(); i += 4) {
    std::uint32_t bits = 0;
    for (std::size_t k = 4; k-- > 0;)
      bits = (bits << 8) | std::to_integer<std::uint32_t>(from[i + k]);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    bits = nan ? (bits >> 16) | 0x40U : (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    narrow->push_back(static_cast<std::byte>(bits & 0xffU));
    narrow->push_back(static_cast<std::byte>((bits >> 8) & 0xffU));
  }
  Tensor tensor = wide;
  tensor.dtype = DType::kBfloat16;
  const std::uint64_t size = narrow->size();
  tensor.pieces[0].run = Run{.stored_size = size, .size = size, .owned = std::move(narrow)};
  return tensor;
}

/// (array, dtype, device, requires_grad). NumPy has no bfloat16: it came as float32, and the loader
/// rounds it back.
Result<Node> TensorReading::from_numpy(const TorchCall& call) {
  CKPTVERIFY_TRY(const PickleNode* array, needed(call, 0));
  CKPTVERIFY_TRY(const PickleNode* type, needed(call, 1));
  CKPTVERIFY_TRY(auto inner, read(*array));
  const auto dtype = torch_dtype(qualified_name(*type));
  const auto* tensor = std::get_if<Tensor>(&inner);
  if (tensor != nullptr && dtype && tensor->dtype == *dtype) return inner;
  if (tensor != nullptr && dtype == DType::kBfloat16 && tensor->dtype == DType::kFloat32 &&
      tensor->byte_order == ByteOrder::kLittle && tensor->pieces.size() == 1 &&
      tensor->pieces[0].run.owned != nullptr) {
    return Node(rounded(*tensor));
  }
  return composite(call.name,
                   {{"array", std::move(inner)}, {"dtype", Value(qualified_name(*type))}});
}

Result<Node> TensorReading::read_call(const TorchCall& call) {
  std::string_view name = call.name;
  name.remove_prefix(std::min(name.size(), kModule.size()));
  if (name == "_rebuild_tensor_v2" || name == "_rebuild_tensor") {
    CKPTVERIFY_TRY(const auto arguments, common(call));
    return with_metadata(call, arguments, 6);
  }
  if (name == "_rebuild_tensor_v3") {
    CKPTVERIFY_TRY(auto arguments, common(call));
    CKPTVERIFY_TRY(const PickleNode* type, needed(call, 6));
    arguments.dtype = torch_dtype(qualified_name(*type));
    if (!arguments.dtype) {
      return fault(type->offset, CauseKind::kTensorRep,
                   "a tensor has an unknown dtype; found " + qualified_name(*type));
    }
    return with_metadata(call, arguments, 7);
  }
  if (name == "_rebuild_qtensor") return quantized(call);
  if (name == "_rebuild_sparse_tensor" || name == "_rebuild_sparse_csr_tensor") {
    return sparse(call);
  }
  if (name == "_rebuild_nested_tensor") return nested(call);
  if (name == "_rebuild_meta_tensor_no_storage") return without_bytes(call, 0);
  if (name == "_rebuild_wrapper_subclass") return without_bytes(call, 1);
  if (name == "_rebuild_device_tensor_from_numpy" || name == "_rebuild_xla_tensor") {
    return from_numpy(call);
  }
  // A parameter, or a copy from a device that has no storage of its own: the tensor inside.
  CKPTVERIFY_TRY(const PickleNode* inner, needed(call, 0));
  return read(*inner);
}

Result<Node> TensorReading::read(const PickleNode& node) {
  if (depth_ >= kTensorDepthMax) {
    return fault(node.offset, CauseKind::kTensorRep, "tensors in tensors are nested too deep");
  }
  ++depth_;
  Result<Node> result = Node();
  if (is_storage(node) || is_nested_file(node)) {
    result = whole_storage(node);
  } else if (is_numpy_array(node)) {
    result = numpy_array(node);
  } else if (is_tensor(node)) {
    result = read_call(call_of(node));
  } else {
    result = fault(node.offset, CauseKind::kTensorRep, "no tensor where one is expected");
  }
  --depth_;
  return result;
}

}  // namespace

bool is_nested_file(const PickleNode& node) {
  return node.kind == PickleKind::kCall &&
         node.items()[0]->is_global("torch.storage", "_load_from_bytes");
}

Result<std::shared_ptr<const Checkpoint>> nested_file(const PickleNode& node,
                                                      const TorchContext& context) {
  if (const auto known = context.nested->find(&node); known != context.nested->end()) {
    return known->second;
  }
  const PickleNode* argument_node = argument(node, 0);
  auto bytes = argument_node == nullptr ? std::nullopt : bytes_of(*argument_node);
  if (!bytes) {
    return fault(node.offset, CauseKind::kBitrot, "a file inside of the pickle has no bytes");
  }
  if (!context.read_nested) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message =
                     "a torch.save file inside of the pickle, in a place where none is "
                     "expected",
                 .offset = node.offset};
  }
  auto read = context.read_nested(*std::move(bytes));
  if (!read) {
    Error error = std::move(read).error();
    error.message = "in a torch.save file inside of the pickle: " + error.text();
    error.offset = node.offset;
    return error;
  }
  auto file = std::make_shared<const Checkpoint>(*std::move(read));
  context.nested->emplace(&node, file);
  return file;
}

bool is_tensor_function(std::string_view name) {
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
  return name.starts_with(kModule) && std::find(kFunctions.begin(), kFunctions.end(),
                                                name.substr(kModule.size())) != kFunctions.end();
}

bool is_tensor(const PickleNode& node) {
  return is_storage(node) || (node.kind == PickleKind::kCall && is_tensor_function(callee(node)));
}

Result<Node> rebuild_tensor(const PickleNode& node, const TorchContext& context) {
  return TensorReading(context).read(node);
}

Result<Node> rebuild_tensor(const TorchCall& call, const TorchContext& context) {
  return TensorReading(context).read_call(call);
}

}  // namespace ckptverify
