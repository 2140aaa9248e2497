// Chunks are stored whole, those at the edge too; only what lies inside the shape counts.
#include "formats/hdf5_tensor.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "formats/container/hdf5_filters.h"

namespace ckptverify {
namespace {

constexpr std::uint64_t kCellsMax = 4'000'000;  // 1 TiB in chunks of 256 KiB
// Unwritten chunks cost no byte in the file, so a small file could claim any amount.
constexpr std::uint64_t kUnwrittenBytesMax = std::uint64_t{1} << 30;

struct FloatRow {
  std::uint64_t size;
  std::uint64_t exponent;
  std::uint64_t mantissa;
  std::uint64_t bias;
  DType real;
  DType complex;
};

constexpr std::array kFloats = {
    FloatRow{2, 5, 10, 15, DType::kFloat16, DType::kComplex32},
    FloatRow{4, 8, 23, 127, DType::kFloat32, DType::kComplex64},
    FloatRow{8, 11, 52, 1023, DType::kFloat64, DType::kComplex128},
};

Error malformed(std::string message) {
  return Error{.message = std::move(message), .cause = Cause{CauseKind::kBitrot, {}}};
}

Error unsupported(std::string message) {
  return Error{.kind = ErrorKind::kUnsupported, .message = std::move(message)};
}

std::optional<DType> dtype_of_float(const Hdf5Type& type) {
  const bool complex = type.kind == Hdf5Class::kComplex;
  const std::uint64_t size = complex ? type.size / 2 : type.size;
  if (!complex && size == 2 && type.exponent == 8 && type.mantissa == 7 && type.bias == 127)
    return DType::kBfloat16;
  for (const FloatRow& row : kFloats)
    if (size == row.size && type.exponent == row.exponent && type.mantissa == row.mantissa &&
        type.bias == row.bias)
      return complex ? row.complex : row.real;
  return std::nullopt;
}

std::optional<DType> dtype_of_integer(std::uint64_t size, std::array<DType, 4> by_width) {
  switch (size) {
    case 1:
      return by_width[0];
    case 2:
      return by_width[1];
    case 4:
      return by_width[2];
    case 8:
      return by_width[3];
    default:
      return std::nullopt;
  }
}

Result<std::uint64_t> byte_count(std::span<const std::uint64_t> shape, std::uint64_t element) {
  CKPTVERIFY_TRY(const std::uint64_t count, checked_product(shape));
  return checked_multiply(count, element);
}

/// The grid of chunks over a shape.
class Grid {
 public:
  static Result<Grid> over(const Hdf5Dataset& dataset) {
    Grid grid(dataset);
    for (std::size_t d = 0; d < dataset.shape.size(); ++d) {
      const std::uint64_t chunk = dataset.chunk_shape[d];
      grid.counts_.push_back(dataset.shape[d] / chunk + (dataset.shape[d] % chunk != 0 ? 1U : 0U));
    }
    CKPTVERIFY_TRY(grid.cell_count_, checked_product(grid.counts_));
    if (grid.cell_count_ > kCellsMax)
      return unsupported("more chunks than are read; found " + std::to_string(grid.cell_count_) +
                         ", expected at most " + std::to_string(kCellsMax));
    return grid;
  }

  std::uint64_t cell_count() const { return cell_count_; }

  /// The cell that begins at an element; none where no cell does.
  std::optional<std::uint64_t> cell_at(std::span<const std::uint64_t> offset) const {
    std::uint64_t cell = 0;
    for (std::size_t d = 0; d < counts_.size(); ++d) {
      if (offset[d] % dataset_.chunk_shape[d] != 0) return std::nullopt;
      const std::uint64_t index = offset[d] / dataset_.chunk_shape[d];
      if (index >= counts_[d]) return std::nullopt;
      cell = cell * counts_[d] + index;
    }
    return cell;
  }

  std::vector<std::uint64_t> offset_of(std::uint64_t cell) const {
    std::vector<std::uint64_t> offset(counts_.size());
    for (std::size_t d = counts_.size(); d-- > 0; cell /= counts_[d])
      offset[d] = cell % counts_[d] * dataset_.chunk_shape[d];
    return offset;
  }

  /// The part of the cell that lies inside the shape.
  Piece piece_at(std::vector<std::uint64_t> offset) const {
    Piece piece{
        .offset = std::move(offset), .shape = dataset_.chunk_shape, .strides = {}, .run = {}};
    for (std::size_t d = 0; d < counts_.size(); ++d)
      piece.shape[d] = std::min(piece.shape[d], dataset_.shape[d] - piece.offset[d]);
    return piece;
  }

 private:
  explicit Grid(const Hdf5Dataset& dataset) : dataset_(dataset) {}
  const Hdf5Dataset& dataset_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t cell_count_ = 0;
};

/// A run of one fill value that every element of the piece is.
Result<void> fill_piece(const Hdf5Dataset& dataset, Piece& piece) {
  if (dataset.fill.size() != dataset.type.size)
    return unsupported("part of it was never written and its fill value was not read");
  piece.strides.assign(piece.shape.size(), 0);
  piece.run = {.stored_size = dataset.fill.size(),
               .size = dataset.fill.size(),
               .owned = std::make_shared<const std::vector<std::byte>>(dataset.fill)};
  return {};
}

Result<void> check_unwritten(const Hdf5Dataset& dataset, std::uint64_t element) {
  CKPTVERIFY_TRY(const std::uint64_t size, byte_count(dataset.shape, element));
  if (size > kUnwrittenBytesMax)
    return unsupported("too much of it was never written; found a tensor of " +
                       std::to_string(size) + " bytes, expected at most " +
                       std::to_string(kUnwrittenBytesMax));
  return {};
}

/// The decoder of one chunk: filters that its mask names were not applied to it.
Result<Decode> decoder_of(const Hdf5Dataset& dataset, const Hdf5Chunk& chunk) {
  std::vector<std::uint32_t> applied;
  for (std::size_t i = 0; i < dataset.filters.size(); ++i)
    if (i >= 32 || (chunk.filter_mask >> i & 1U) == 0) applied.push_back(dataset.filters[i]);
  const auto decode = hdf5_decoder(applied, dataset.shuffle_size);
  if (decode) return *decode;
  std::string names;
  for (const std::uint32_t id : applied) names += (names.empty() ? "" : ", ") + std::to_string(id);
  return unsupported("its filters are not read; found " + names);
}

Result<Run> run_of(const Hdf5Dataset& dataset, const Hdf5Chunk& chunk, std::uint64_t size) {
  CKPTVERIFY_TRY(const Decode decode, decoder_of(dataset, chunk));
  if (decode == nullptr && chunk.stored.size != size)
    return malformed("chunk without filters has another size; found " +
                     std::to_string(chunk.stored.size) + " bytes, expected " +
                     std::to_string(size));
  return Run{.offset = chunk.stored.offset,
             .stored_size = chunk.stored.size,
             .size = size,
             .decode = decode};
}

Result<Hdf5Tensor> chunked_tensor(const Hdf5Dataset& dataset, DType dtype) {
  CKPTVERIFY_TRY(const Grid grid, Grid::over(dataset));
  CKPTVERIFY_TRY(const std::uint64_t size, byte_count(dataset.chunk_shape, dtype_size(dtype)));
  Hdf5Tensor result{.tensor = {.dtype = dtype, .shape = dataset.shape, .pieces = {}}};
  std::vector<bool> written(grid.cell_count(), false);
  for (const Hdf5Chunk& chunk : dataset.chunks) {
    const auto cell = grid.cell_at(chunk.offset);
    if (!cell || written[*cell])
      return malformed("a chunk is stored twice or lies outside of the shape; found " +
                       std::to_string(dataset.chunks.size()) + " chunks, expected " +
                       std::to_string(grid.cell_count()));
    written[*cell] = true;
    Piece piece = grid.piece_at(chunk.offset);
    piece.strides = contiguous_strides(dataset.chunk_shape);
    CKPTVERIFY_TRY(piece.run, run_of(dataset, chunk, size));
    result.tensor.pieces.push_back(std::move(piece));
  }
  result.unwritten_count = grid.cell_count() - dataset.chunks.size();
  if (result.unwritten_count == 0) return result;
  CKPTVERIFY_TRY_VOID(check_unwritten(dataset, dtype_size(dtype)));
  for (std::uint64_t cell = 0; cell < grid.cell_count(); ++cell) {
    if (written[cell]) continue;
    Piece piece = grid.piece_at(grid.offset_of(cell));
    CKPTVERIFY_TRY_VOID(fill_piece(dataset, piece));
    result.tensor.pieces.push_back(std::move(piece));
  }
  return result;
}

Result<Hdf5Tensor> whole_tensor(const Hdf5Dataset& dataset, DType dtype, std::uint64_t size) {
  Run run;
  if (dataset.layout == Hdf5Layout::kCompact) {
    if (!dataset.compact) return unsupported("its bytes in the object header were not read");
    run.owned = std::make_shared<const std::vector<std::byte>>(*dataset.compact);
    run.stored_size = run.size = dataset.compact->size();
  } else if (dataset.contiguous) {
    run.offset = dataset.contiguous->offset;
    run.stored_size = run.size = dataset.contiguous->size;
  } else {
    CKPTVERIFY_TRY_VOID(check_unwritten(dataset, dtype_size(dtype)));
    Hdf5Tensor result{.tensor = contiguous_tensor(dtype, dataset.shape, {}), .unwritten_count = 1};
    CKPTVERIFY_TRY_VOID(fill_piece(dataset, result.tensor.pieces.front()));
    return result;
  }
  if (run.size != size)
    return malformed("stored size does not match shape and type; found " +
                     std::to_string(run.size) + " bytes, expected " + std::to_string(size));
  return Hdf5Tensor{.tensor = contiguous_tensor(dtype, dataset.shape, std::move(run))};
}

}  // namespace

std::optional<DType> dtype_of_hdf5(const Hdf5Type& type) {
  switch (type.kind) {
    case Hdf5Class::kSigned:
      return dtype_of_integer(type.size,
                              {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64});
    case Hdf5Class::kUnsigned:
      return dtype_of_integer(type.size,
                              {DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64});
    case Hdf5Class::kFloat:
    case Hdf5Class::kComplex:
      return dtype_of_float(type);
    case Hdf5Class::kBool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

bool hdf5_holds(const Hdf5Type& type, DType dtype) {
  if (dtype_of_hdf5(type) == dtype) return true;
  const bool raw = type.kind == Hdf5Class::kOpaque || type.kind == Hdf5Class::kUnsigned;
  const bool byte_as_bool = dtype == DType::kBool && type.kind == Hdf5Class::kSigned;
  return (raw || byte_as_bool) && type.size == dtype_size(dtype);
}

Result<Hdf5Tensor> tensor_of_hdf5(const Hdf5Dataset& dataset, DType dtype) {
  CKPTVERIFY_TRY(const std::uint64_t size, byte_count(dataset.shape, dtype_size(dtype)));
  if (dataset.layout == Hdf5Layout::kExternal || dataset.layout == Hdf5Layout::kVirtual)
    return unsupported("its data lie in other files, which are not followed");
  if (dataset.layout == Hdf5Layout::kDamaged) return malformed("its chunks are not listed");
  Result<Hdf5Tensor> result =
      size == 0 ? Hdf5Tensor{.tensor = contiguous_tensor(dtype, dataset.shape, {})}
      : dataset.layout == Hdf5Layout::kChunked ? chunked_tensor(dataset, dtype)
                                               : whole_tensor(dataset, dtype, size);
  if (!result) return result;
  result->tensor.byte_order = dataset.type.order;
  CKPTVERIFY_TRY_VOID(check_bounds(result->tensor));
  return result;
}

}  // namespace ckptverify
