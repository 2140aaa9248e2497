// Element types, and the arithmetic on shapes and strides.
#include "ckptverify/tensor.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace ckptverify {

namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::uint64_t size;
};

using enum DType;

constexpr std::array kRows = {
    DTypeRow{kBool, "bool", 1},
    DTypeRow{kUint8, "uint8", 1},
    DTypeRow{kUint16, "uint16", 2},
    DTypeRow{kUint32, "uint32", 4},
    DTypeRow{kUint64, "uint64", 8},
    DTypeRow{kInt8, "int8", 1},
    DTypeRow{kInt16, "int16", 2},
    DTypeRow{kInt32, "int32", 4},
    DTypeRow{kInt64, "int64", 8},
    DTypeRow{kFloat16, "float16", 2},
    DTypeRow{kBfloat16, "bfloat16", 2},
    DTypeRow{kFloat32, "float32", 4},
    DTypeRow{kFloat64, "float64", 8},
    DTypeRow{kComplex32, "complex32", 4},
    DTypeRow{kComplex64, "complex64", 8},
    DTypeRow{kComplex128, "complex128", 16},
    DTypeRow{kFloat8E4m3fn, "float8_e4m3fn", 1},
    DTypeRow{kFloat8E5m2, "float8_e5m2", 1},
    DTypeRow{kFloat8E4m3fnuz, "float8_e4m3fnuz", 1},
    DTypeRow{kFloat8E5m2fnuz, "float8_e5m2fnuz", 1},
    DTypeRow{kFloat8E8m0fnu, "float8_e8m0fnu", 1},
    DTypeRow{kFloat4E2m1fnX2, "float4_e2m1fn_x2", 1},
    DTypeRow{kQint8, "qint8", 1},
    DTypeRow{kQuint8, "quint8", 1},
    DTypeRow{kQint32, "qint32", 4},
    DTypeRow{kQuint4x2, "quint4x2", 1},
    DTypeRow{kQuint2x4, "quint2x4", 1},
    DTypeRow{kBits8, "bits8", 1},
    DTypeRow{kBits16, "bits16", 2},
    DTypeRow{kBits1x8, "bits1x8", 1},
    DTypeRow{kBits2x4, "bits2x4", 1},
    DTypeRow{kBits4x2, "bits4x2", 1},
    DTypeRow{kInt1, "int1", 1},
    DTypeRow{kInt2, "int2", 1},
    DTypeRow{kInt3, "int3", 1},
    DTypeRow{kInt4, "int4", 1},
    DTypeRow{kInt5, "int5", 1},
    DTypeRow{kInt6, "int6", 1},
    DTypeRow{kInt7, "int7", 1},
    DTypeRow{kUint1, "uint1", 1},
    DTypeRow{kUint2, "uint2", 1},
    DTypeRow{kUint3, "uint3", 1},
    DTypeRow{kUint4, "uint4", 1},
    DTypeRow{kUint5, "uint5", 1},
    DTypeRow{kUint6, "uint6", 1},
    DTypeRow{kUint7, "uint7", 1},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (static_cast<std::size_t>(kRows[i].dtype) != i) return false;
  return true;
}

static_assert(kRows.size() == static_cast<std::size_t>(kUint7) + 1);
static_assert(in_order());

const DTypeRow& row(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)];
}

// Wide enough for the sum of any number of products of 64-bit numbers that fits in memory.
__extension__ using Wide = __int128;
constexpr Wide kWideBound = std::numeric_limits<std::uint64_t>::max();

Error rank_error(std::string_view what, std::size_t found, std::size_t expected) {
  return Error{.message = "the " + std::string(what) + " of a tensor have another rank; found " +
                          std::to_string(found) + ", expected " + std::to_string(expected)};
}

/// The box of the piece lies inside the shape of the whole.
Result<void> check_box(std::span<const std::uint64_t> shape, const Piece& piece) {
  const std::size_t rank = shape.size();
  if (piece.offset.size() != rank) return rank_error("offsets", piece.offset.size(), rank);
  if (piece.shape.size() != rank) return rank_error("dimensions", piece.shape.size(), rank);
  if (piece.strides.size() != rank) return rank_error("strides", piece.strides.size(), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    CKPTVERIFY_TRY(const std::uint64_t end, checked_add(piece.offset[d], piece.shape[d]));
    if (end > shape[d]) {
      return Error{.message = "a piece of a tensor leaves dimension " + std::to_string(d) +
                              "; found an end of " + std::to_string(end) + ", expected at most " +
                              std::to_string(shape[d])};
    }
  }
  return {};
}

/// Every element that the strides reach lies inside the decoded run.
Result<void> check_reach(const Piece& piece, std::uint64_t element_size) {
  CKPTVERIFY_TRY(const std::uint64_t count, checked_product(piece.shape));
  if (count == 0) return {};
  const Wide available = static_cast<Wide>(piece.run.size / element_size);
  // |span| < 2^127 for one dimension; a sum that leaves the run is refused at once, so that it
  // cannot grow.
  Wide lowest = static_cast<Wide>(piece.first_element);
  Wide highest = lowest;
  for (std::size_t d = 0; d < piece.shape.size(); ++d) {
    const Wide reach = static_cast<Wide>(piece.shape[d] - 1) * static_cast<Wide>(piece.strides[d]);
    (reach < 0 ? lowest : highest) += reach;
    if (lowest < -kWideBound || highest > kWideBound) break;
  }
  if (lowest < 0 || highest >= available) {
    const auto text = [](Wide value) {
      if (value < -kWideBound || value > kWideBound) return std::string("beyond 64 bits");
      const std::string digits =
          std::to_string(static_cast<std::uint64_t>(value < 0 ? -value : value));
      return value < 0 ? "-" + digits : digits;
    };
    return Error{.message = "the strides of a tensor leave its storage; found elements " +
                            text(lowest) + " to " + text(highest) + ", expected 0 to less than " +
                            text(available)};
  }
  return {};
}

/// What the run says about itself.
Result<void> check_run(const Run& run) {
  if (run.decode == nullptr && run.stored_size != run.size) {
    return Error{.message = "a run of plain bytes has two sizes; found " +
                            std::to_string(run.stored_size) + " stored, expected " +
                            std::to_string(run.size)};
  }
  if (run.owned != nullptr) {
    const auto stored = slice(*run.owned, run.offset, run.stored_size);
    if (!stored) return stored.error();
  }
  return {};
}

}  // namespace

std::string_view dtype_name(DType dtype) {
  return row(dtype).name;
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto found = std::find_if(kRows.begin(), kRows.end(),
                                  [name](const DTypeRow& entry) { return entry.name == name; });
  if (found == kRows.end()) return std::nullopt;
  return found->dtype;
}

std::uint64_t dtype_size(DType dtype) {
  return row(dtype).size;
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::uint64_t> shape) {
  // A stride that leaves 64 bits belongs to a shape that no file can hold: it stays at the limit,
  // where check_bounds() refuses it.
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::vector<std::int64_t> strides(shape.size());
  std::uint64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = static_cast<std::int64_t>(stride);
    const std::uint64_t size = std::max<std::uint64_t>(shape[d], 1);
    stride = stride > kMax / size ? kMax : stride * size;
  }
  return strides;
}

Tensor contiguous_tensor(DType dtype, std::vector<std::uint64_t> shape, Run run) {
  Piece piece{.offset = std::vector<std::uint64_t>(shape.size(), 0),
              .shape = shape,
              .strides = contiguous_strides(shape),
              .run = std::move(run)};
  Tensor tensor{.dtype = dtype, .shape = std::move(shape), .pieces = {}};
  tensor.pieces.push_back(std::move(piece));
  return tensor;
}

Result<void> check_bounds(const Tensor& tensor) {
  CKPTVERIFY_TRY(const std::uint64_t count, checked_product(tensor.shape));
  CKPTVERIFY_TRY_VOID(checked_multiply(count, dtype_size(tensor.dtype)));
  const std::vector<std::uint64_t> shape = tiled_shape(tensor);
  for (const Piece& piece : tensor.pieces) {
    CKPTVERIFY_TRY_VOID(check_box(shape, piece));
    CKPTVERIFY_TRY_VOID(check_reach(piece, dtype_size(tensor.dtype)));
    CKPTVERIFY_TRY_VOID(check_run(piece.run));
  }
  return {};
}

std::vector<std::uint64_t> tiled_shape(const Tensor& tensor) {
  if (!tensor.flattened) return tensor.shape;
  const auto count = checked_product(tensor.shape);
  return {count ? *count : std::numeric_limits<std::uint64_t>::max()};
}

std::uint64_t logical_size(const Tensor& tensor) {
  const auto count = checked_product(tensor.shape);
  if (!count) return std::numeric_limits<std::uint64_t>::max();
  const auto size = checked_multiply(*count, dtype_size(tensor.dtype));
  return size ? *size : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace ckptverify
