// From pieces, strides and encodings to the logical bytes of a tensor: row-major, little-endian,
// views resolved. One contiguous little-endian piece is not copied.
#include <algorithm>
#include <cstring>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

namespace {

// A tensor that must be gathered is held in memory once. The largest single tensors of published
// models are embeddings of about 16 GiB.
constexpr std::uint64_t kGatheredBytesMax = std::uint64_t{32} << 30;

// A view may show one stored element many times (stride 0). Expanded vectors and masks stay far
// below; without the limit, a file of a kilobyte could ask for all memory.
constexpr std::uint64_t kRepeatedBytesMax = std::uint64_t{256} << 20;

/// The parts of an element that have a byte order and, if floating, a sign of their own.
struct Parts {
  std::size_t size = 1;
  bool is_floating = false;
  bool is_complex = false;
};

Parts parts_of(DType dtype) {
  switch (dtype) {
    case DType::kComplex32:
      return {.size = 2, .is_floating = true, .is_complex = true};
    case DType::kComplex64:
      return {.size = 4, .is_floating = true, .is_complex = true};
    case DType::kComplex128:
      return {.size = 8, .is_floating = true, .is_complex = true};
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return {.size = static_cast<std::size_t>(dtype_size(dtype)), .is_floating = true};
    default:
      return {.size = static_cast<std::size_t>(dtype_size(dtype))};
  }
}

/// Nothing but a view of the stored bytes is needed after gathering.
bool is_as_stored(const Tensor& tensor) {
  const bool same_order =
      tensor.byte_order == ByteOrder::kLittle || parts_of(tensor.dtype).size == 1;
  return same_order && !tensor.conjugate && !tensor.negative;
}

/// One dimension of size 1 may have any stride.
bool is_contiguous(const Piece& piece) {
  const std::vector<std::int64_t> expected = contiguous_strides(piece.shape);
  for (std::size_t d = 0; d < piece.shape.size(); ++d)
    if (piece.shape[d] > 1 && piece.strides[d] != expected[d]) return false;
  return true;
}

/// A decoder knows its run alone: what it says of a byte there is said of a byte of the file.
Error in_file(const Checkpoint& checkpoint, const Run& run, Error error) {
  if (run.owned != nullptr) return error;
  if (error.offset) *error.offset += run.offset;
  return std::move(error).about(checkpoint.files[run.file].name());
}

/// The bytes of a run, decoded into `buffer` where the file does not have them as such.
Result<Bytes> decoded_bytes(const Checkpoint& checkpoint, const Run& run,
                            std::vector<std::byte>& buffer) {
  CKPTVERIFY_TRY(const Bytes stored, stored_bytes(checkpoint, run));
  if (run.decode == nullptr) return stored;
  auto decoded = run.decode(stored, run.size);
  if (!decoded) return in_file(checkpoint, run, std::move(decoded).error());
  buffer = *std::move(decoded);
  if (buffer.size() != run.size) {
    return Error{.message = "a decoder gave another size; found " + std::to_string(buffer.size()) +
                            " bytes, expected " + std::to_string(run.size),
                 .offset = run.offset};
  }
  return Bytes(buffer);
}

using CopyRow = void (*)(std::byte* to, const std::byte* from, std::uint64_t count,
                         std::ptrdiff_t step);

template <std::size_t kSize>
void copy_row(std::byte* to, const std::byte* from, std::uint64_t count, std::ptrdiff_t step) {
  for (std::uint64_t i = 0; i < count; ++i, to += kSize) {
    std::memcpy(to, from, kSize);
    // The pointer must not leave the run after the last element.
    if (i + 1 < count) from += step;
  }
}

CopyRow row_copier(std::uint64_t element_size) {
  switch (element_size) {
    case 1:
      return copy_row<1>;
    case 2:
      return copy_row<2>;
    case 4:
      return copy_row<4>;
    case 8:
      return copy_row<8>;
    default:
      CKPTVERIFY_ASSERT(element_size == 16);
      return copy_row<16>;
  }
}

/// How the elements of one piece move: `rank` outer dimensions are counted through, and for each
/// index `count` elements that lie `step` bytes apart become neighbours, or one block of bytes
/// does.
struct Walk {
  std::size_t rank = 0;
  std::uint64_t block_bytes = 0;  // contiguous in both; 0: a row of single elements
  std::uint64_t row_count = 0;
  std::ptrdiff_t row_step = 0;
};

Walk walk_of(const Tensor& tensor, std::span<const std::uint64_t> whole, const Piece& piece) {
  const std::uint64_t element_size = dtype_size(tensor.dtype);
  std::size_t rank = piece.shape.size();
  std::uint64_t elements = 1;
  while (rank > 0) {
    const std::size_t d = rank - 1;
    if (piece.shape[d] > 1 && piece.strides[d] != static_cast<std::int64_t>(elements)) break;
    elements *= piece.shape[d];
    rank = d;
    // Beyond a dimension that the piece does not fill, the target is not contiguous any more.
    if (piece.shape[d] != whole[d]) break;
  }
  if (elements > 1 || rank == 0) return {.rank = rank, .block_bytes = elements * element_size};
  const std::size_t last = piece.shape.size() - 1;
  if (rank <= last) return {.rank = rank, .block_bytes = element_size};
  return {.rank = last,
          .row_count = piece.shape[last],
          .row_step = static_cast<std::ptrdiff_t>(piece.strides[last]) *
                      static_cast<std::ptrdiff_t>(element_size)};
}

/// Copies one piece's elements to their places in the whole. check_bounds() has proven every index.
void place(const Tensor& tensor, const Piece& piece, Bytes stored, std::span<std::byte> whole) {
  const auto element_size = static_cast<std::int64_t>(dtype_size(tensor.dtype));
  const std::vector<std::uint64_t> shape = tiled_shape(tensor);
  const std::vector<std::int64_t> targets = contiguous_strides(shape);
  const Walk walk = walk_of(tensor, shape, piece);
  const CopyRow copy = row_copier(dtype_size(tensor.dtype));
  auto from = static_cast<std::int64_t>(piece.first_element);
  std::int64_t to = 0;
  for (std::size_t d = 0; d < piece.shape.size(); ++d)
    to += static_cast<std::int64_t>(piece.offset[d]) * targets[d];
  std::vector<std::uint64_t> index(walk.rank, 0);
  const auto next = [&] {
    for (std::size_t d = walk.rank; d-- > 0;) {
      if (piece.shape[d] == 1) continue;  // its stride may be anything, so it is never added
      from += piece.strides[d];
      to += targets[d];
      if (++index[d] < piece.shape[d]) return true;
      from -= static_cast<std::int64_t>(piece.shape[d]) * piece.strides[d];
      to -= static_cast<std::int64_t>(piece.shape[d]) * targets[d];
      index[d] = 0;
    }
    return false;
  };
  do {
    std::byte* target = whole.data() + to * element_size;
    const std::byte* source = stored.data() + from * element_size;
    if (walk.block_bytes > 0)
      std::memcpy(target, source, static_cast<std::size_t>(walk.block_bytes));
    else
      copy(target, source, walk.row_count, walk.row_step);
  } while (next());
}

void swap_parts(std::span<std::byte> bytes, std::size_t size) {
  for (std::size_t i = 0; i + size <= bytes.size(); i += size)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + size));
}

/// Flips the sign bit of every `stride`-th part, from the part `first` on; little-endian.
void flip_signs(std::span<std::byte> bytes, std::size_t size, std::size_t first,
                std::size_t stride) {
  for (std::size_t i = (first + 1) * size - 1; i < bytes.size(); i += stride * size)
    bytes[i] ^= std::byte{0x80};
}

Result<void> resolve_views(const Tensor& tensor, std::span<std::byte> bytes) {
  const Parts parts = parts_of(tensor.dtype);
  if (tensor.byte_order == ByteOrder::kBig) swap_parts(bytes, parts.size);
  if (tensor.negative) {
    if (!parts.is_floating) {
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "a negated view of a type without a sign bit of its own; found " +
                              std::string(dtype_name(tensor.dtype))};
    }
    flip_signs(bytes, parts.size, 0, 1);
  }
  if (tensor.conjugate && parts.is_complex) flip_signs(bytes, parts.size, 1, 2);
  return {};
}

/// The limits on what is gathered, and that the pieces can fill the whole.
Result<void> check_amounts(const Tensor& tensor, std::uint64_t size) {
  std::uint64_t elements = 0;
  std::uint64_t stored = 0;
  for (const Piece& piece : tensor.pieces) {
    CKPTVERIFY_TRY(const std::uint64_t count, checked_product(piece.shape));
    CKPTVERIFY_TRY(elements, checked_add(elements, count));
    CKPTVERIFY_TRY(stored, checked_add(stored, piece.run.size));
  }
  CKPTVERIFY_TRY(const std::uint64_t expected, checked_product(tensor.shape));
  if (elements != expected) {
    return Error{.message = "the pieces of a tensor do not tile its shape; found " +
                            std::to_string(elements) + " elements, expected " +
                            std::to_string(expected)};
  }
  const std::uint64_t repeated = size > stored ? size - stored : 0;
  if (size > kGatheredBytesMax || repeated > kRepeatedBytesMax) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a tensor is too large to be gathered; found " + std::to_string(size) +
                            " bytes from " + std::to_string(stored) + " stored, expected at most " +
                            std::to_string(kGatheredBytesMax) + " and at most " +
                            std::to_string(kRepeatedBytesMax) + " repeated"};
  }
  return {};
}

Result<LogicalBytes> gather(const Checkpoint& checkpoint, const Tensor& tensor,
                            std::uint64_t size) {
  CKPTVERIFY_TRY_VOID(check_amounts(tensor, size));
  std::vector<std::byte> whole;
  for (const Piece& piece : tensor.pieces) {
    CKPTVERIFY_TRY(const std::uint64_t count, checked_product(piece.shape));
    if (count == 0) continue;
    std::vector<std::byte> buffer;
    CKPTVERIFY_TRY(const Bytes stored, decoded_bytes(checkpoint, piece.run, buffer));
    // Only now: the first run has shown that there is data behind the claim.
    whole.resize(static_cast<std::size_t>(size));
    place(tensor, piece, stored, whole);
  }
  CKPTVERIFY_TRY_VOID(resolve_views(tensor, whole));
  return LogicalBytes(std::move(whole));
}

}  // namespace

Result<Bytes> stored_bytes(const Checkpoint& checkpoint, const Run& run) {
  if (run.owned != nullptr) return slice(*run.owned, run.offset, run.stored_size);
  if (run.file >= checkpoint.files.size()) {
    return Error{.message = "a run names a file that is not there; found number " +
                            std::to_string(run.file) + ", expected less than " +
                            std::to_string(checkpoint.files.size())};
  }
  const Source& file = checkpoint.files[run.file];
  auto bytes = slice(file.bytes(), run.offset, run.stored_size);
  if (!bytes) return std::move(bytes).error().about(file.name());
  return bytes;
}

Result<LogicalBytes> logical_bytes(const Checkpoint& checkpoint, const Tensor& tensor) {
  if (tensor.absent) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a tensor without data has no logical bytes"};
  }
  CKPTVERIFY_TRY_VOID(check_bounds(tensor));
  const std::uint64_t size = logical_size(tensor);
  if (size == 0) return LogicalBytes(Bytes());
  if (tensor.pieces.size() == 1 && is_as_stored(tensor)) {
    const Piece& piece = tensor.pieces[0];
    if (piece.run.decode == nullptr && piece.shape == tiled_shape(tensor) && is_contiguous(piece)) {
      CKPTVERIFY_TRY(const Bytes stored, stored_bytes(checkpoint, piece.run));
      // In bounds: check_bounds() has proven the last element.
      const std::uint64_t start = piece.first_element * dtype_size(tensor.dtype);
      CKPTVERIFY_TRY(const Bytes view, slice(stored, start, size));
      return LogicalBytes(view);
    }
  }
  return gather(checkpoint, tensor, size);
}

}  // namespace ckptverify
