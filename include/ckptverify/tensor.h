// A tensor as a checkpoint holds it: what it is, and where its bytes are. No bytes are copied here;
// logical_bytes() gathers them in row-major order when somebody asks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// PyTorch's element types. The packed float4 holds two values a byte, its shape counts bytes; the
/// integers of 1 to 7 bits are a byte each.
enum class DType {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kComplex32,
  kComplex64,
  kComplex128,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kFloat8E4m3fnuz,
  kFloat8E5m2fnuz,
  kFloat8E8m0fnu,
  kFloat4E2m1fnX2,
  kQint8,
  kQuint8,
  kQint32,
  kQuint4x2,
  kQuint2x4,
  kBits8,
  kBits16,
  kBits1x8,
  kBits2x4,
  kBits4x2,
  kInt1,
  kInt2,
  kInt3,
  kInt4,
  kInt5,
  kInt6,
  kInt7,
  kUint1,
  kUint2,
  kUint3,
  kUint4,
  kUint5,
  kUint6,
  kUint7,
};

/// "float32", "bfloat16", "float8_e4m3fn": PyTorch's names, which are hashed.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_named(std::string_view name);
/// Bytes of one element.
std::uint64_t dtype_size(DType dtype);

/// Turns stored bytes into exactly `size` decoded bytes, or says why not.
using Decode = Result<std::vector<std::byte>> (*)(Bytes stored, std::uint64_t size);

/// A contiguous run of stored bytes, in a file of the checkpoint or in memory of its own.
struct Run {
  std::uint32_t file = 0;         // index into Checkpoint::files
  std::uint64_t offset = 0;       // absolute in that file
  std::uint64_t stored_size = 0;  // bytes on disk
  std::uint64_t size = 0;         // bytes once decoded; equals stored_size without a decoder
  Decode decode = nullptr;        // none: the bytes are as stored
  std::shared_ptr<const std::vector<std::byte>> owned = {};  // bytes that no file holds as such
};

/// The elements of the box [offset, offset + shape) of the whole tensor, and where they are stored.
struct Piece {
  std::vector<std::uint64_t> offset;  // elements, one a dimension
  std::vector<std::uint64_t> shape;   // elements, one a dimension
  std::vector<std::int64_t> strides;  // elements between neighbours in the decoded run
  std::uint64_t first_element = 0;    // where element (0, ..., 0) of the box is in the decoded run
  Run run;
};

enum class ByteOrder { kLittle, kBig };

struct Tensor {
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;  // of the whole tensor
  std::vector<Piece> pieces;         // tile the shape; readers have proven it
  ByteOrder byte_order = ByteOrder::kLittle;
  bool conjugate = false;  // a conj view: the imaginary signs are flipped when read
  bool negative = false;   // a neg view
  bool absent = false;     // has a shape and no data by design (meta)
  /// The pieces are ranges of the elements in row-major order (boxes of one dimension), as
  /// partitioned optimizers cut them, not boxes of the shape.
  bool flattened = false;
};

/// The shape that the pieces tile: the tensor's, or the one dimension of all elements.
std::vector<std::uint64_t> tiled_shape(const Tensor& tensor);

/// Row-major strides of a shape, in elements.
std::vector<std::int64_t> contiguous_strides(std::span<const std::uint64_t> shape);

/// A tensor of one contiguous, row-major piece.
Tensor contiguous_tensor(DType dtype, std::vector<std::uint64_t> shape, Run run);

/// A part of a tensor's own run that lies outside it: every index that the strides can reach must
/// be inside the decoded run. Checks that, without overflow.
Result<void> check_bounds(const Tensor& tensor);

/// The number of logical bytes.
std::uint64_t logical_size(const Tensor& tensor);

}  // namespace ckptverify
