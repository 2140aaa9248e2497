// Source: numpy/core/src/multiarray/methods.c (array_reduce, array_setstate) and descriptor.c.
#include "formats/encoding/numpy_objects.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "formats/encoding/numpy_types.h"
#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/pickle_text.h"

namespace ckptverify {
namespace {

struct NumpyType {
  std::string code;
  std::optional<DType> dtype;
  ByteOrder byte_order = ByteOrder::kLittle;
};

Error fault(const PickleNode& node, std::string message) {
  return {.message = std::move(message), .offset = node.offset, .cause = Cause{CauseKind::kBitrot}};
}

/// numpy.dtype('f8', False, True) with the state (3, '<', ...).
Result<NumpyType> type_of(const PickleNode& node) {
  const PickleNode* code = argument(node, 0);
  if (callee(node) != "numpy.dtype" || code == nullptr || !code->string()) {
    return fault(node, "a NumPy array has no dtype that we know");
  }
  NumpyType type{.code = std::string(*code->string()), .dtype = {}};
  for (const PickleNode* state : node.states()) {
    if (state->items().size() < 2 || !state->items()[1]->string()) {
      return fault(node, "a NumPy dtype has no byte order");
    }
    if (*state->items()[1]->string() == ">") type.byte_order = ByteOrder::kBig;
  }
  type.dtype = numpy_dtype(type.code);
  return type;
}

Result<Node> array_of(const PickleNode& node, const NumpyType& type, const PickleNode& shape_node,
                      bool fortran, std::optional<std::vector<std::byte>> bytes) {
  if (!type.dtype || !bytes) return Node(Opaque{"numpy.ndarray of " + type.code});
  std::vector<std::uint64_t> shape;
  for (const PickleNode* item : shape_node.items()) {
    const auto size = item->integer();
    if (!size || *size < 0) return fault(node, "a NumPy shape has no natural numbers");
    shape.push_back(static_cast<std::uint64_t>(*size));
  }
  CKPTVERIFY_TRY(const auto count, checked_product(shape));
  CKPTVERIFY_TRY(const auto size, checked_multiply(count, dtype_size(*type.dtype)));
  if (size != bytes->size()) {
    return fault(node, "a NumPy array has another size than its shape; found " +
                           std::to_string(bytes->size()) + " bytes, expected " +
                           std::to_string(size));
  }
  Run run{.stored_size = size,
          .size = size,
          .owned = std::make_shared<const std::vector<std::byte>>(*std::move(bytes))};
  Tensor tensor = contiguous_tensor(*type.dtype, shape, std::move(run));
  tensor.byte_order = type.byte_order;
  if (fortran) {
    std::reverse(shape.begin(), shape.end());
    auto strides = contiguous_strides(shape);
    std::reverse(strides.begin(), strides.end());
    tensor.pieces[0].strides = std::move(strides);
  }
  return Node(std::move(tensor));
}

double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const double fraction = bits & 0x3ff;
  double value = 0;
  if (exponent == 0x1f) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

double float_of(std::uint64_t bits, std::size_t size) {
  if (size == 2) return half_to_double(static_cast<std::uint16_t>(bits));
  if (size == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

std::uint64_t bits_of(Bytes little) {
  std::uint64_t bits = 0;
  for (std::size_t i = little.size(); i-- > 0;) {
    bits = (bits << 8) | std::to_integer<std::uint64_t>(little[i]);
  }
  return bits;
}

}  // namespace

std::optional<std::vector<std::byte>> bytes_of(const PickleNode& node) {
  if (const auto bytes = node.bytes()) return std::vector(bytes->begin(), bytes->end());
  const std::string name = callee(node);
  const PickleNode* first = argument(node, 0);
  if (name == "builtins.bytes" && first == nullptr) return std::vector<std::byte>();
  if (name == "_codecs.encode" && first != nullptr && first->string()) {
    auto bytes = latin1_of_utf8(*first->string());
    if (bytes) return *std::move(bytes);
  }
  return std::nullopt;
}

bool is_numpy_array(const PickleNode& node) {
  if (node.kind != PickleKind::kCall) return false;
  const std::string name = callee(node);
  return name == "numpy.core.multiarray._reconstruct" || name == "numpy.core.numeric._frombuffer";
}

bool is_numpy_scalar(const PickleNode& node) {
  return node.kind == PickleKind::kCall && callee(node) == "numpy.core.multiarray.scalar";
}

Result<Node> numpy_array(const PickleNode& node) {
  if (callee(node) == "numpy.core.numeric._frombuffer") {
    const PickleNode* bytes = argument(node, 0);
    const PickleNode* type_node = argument(node, 1);
    const PickleNode* shape = argument(node, 2);
    const PickleNode* order = argument(node, 3);
    if (order == nullptr) return fault(node, "a NumPy array has too few arguments");
    CKPTVERIFY_TRY(const auto type, type_of(*type_node));
    const bool fortran = order->string() == "F";
    return array_of(node, type, *shape, fortran, bytes_of(*bytes));
  }
  // The state: (version, shape, dtype, fortran, bytes or a list of objects).
  if (node.states().size() != 1 || node.states()[0]->items().size() != 5) {
    return fault(node, "a NumPy array has no state");
  }
  const auto state = node.states()[0]->items();
  CKPTVERIFY_TRY(const auto type, type_of(*state[2]));
  const bool fortran = state[3]->boolean().value_or(false);
  return array_of(node, type, *state[1], fortran, bytes_of(*state[4]));
}

Result<Node> numpy_scalar(const PickleNode& node) {
  const PickleNode* type_node = argument(node, 0);
  const PickleNode* bytes_node = argument(node, 1);
  if (bytes_node == nullptr) return fault(node, "a NumPy scalar has too few arguments");
  CKPTVERIFY_TRY(const auto type, type_of(*type_node));
  auto bytes = bytes_of(*bytes_node);
  if (!type.dtype || !bytes) return Node(Opaque{"numpy scalar of " + type.code});
  if (bytes->size() != dtype_size(*type.dtype)) {
    return fault(node, "a NumPy scalar has another size than its dtype; found " +
                           std::to_string(bytes->size()) + " bytes, expected " +
                           std::to_string(dtype_size(*type.dtype)));
  }
  const std::size_t part_size = type.code[0] == 'c' ? bytes->size() / 2 : bytes->size();
  if (type.byte_order == ByteOrder::kBig) {
    for (auto part = bytes->begin(); part != bytes->end();
         part += static_cast<std::ptrdiff_t>(part_size)) {
      std::reverse(part, part + static_cast<std::ptrdiff_t>(part_size));
    }
  }
  const Bytes all = *bytes;
  const std::uint64_t bits = bits_of(all.first(part_size));
  switch (type.code[0]) {
    case 'b':
      return Node(Value(bits != 0));
    case 'f':
      return Node(Value(float_of(bits, part_size)));
    case 'i':
      return Node(integer_of_bytes(all));
    case 'u': {
      bytes->push_back(std::byte{0});  // never negative
      return Node(integer_of_bytes(*bytes));
    }
    default:
      break;
  }
  return Node(std::make_shared<const Composite>(
      Composite{"complex",
                {{"imag", Value(float_of(bits_of(all.subspan(part_size)), part_size))},
                 {"real", Value(float_of(bits, part_size))}}}));
}

}  // namespace ckptverify
