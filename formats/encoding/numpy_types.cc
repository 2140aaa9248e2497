// One table for both: what stands in neither has no dtype of PyTorch's.
#include "formats/encoding/numpy_types.h"

#include <array>

namespace ckptverify {
namespace {

struct TypeRow {
  std::string_view code;  // without the byte order
  DType dtype;
};

constexpr std::array kTypes = {
    TypeRow{"b1", DType::kBool},      TypeRow{"i1", DType::kInt8},
    TypeRow{"i2", DType::kInt16},     TypeRow{"i4", DType::kInt32},
    TypeRow{"i8", DType::kInt64},     TypeRow{"u1", DType::kUint8},
    TypeRow{"u2", DType::kUint16},    TypeRow{"u4", DType::kUint32},
    TypeRow{"u8", DType::kUint64},    TypeRow{"f2", DType::kFloat16},
    TypeRow{"f4", DType::kFloat32},   TypeRow{"f8", DType::kFloat64},
    TypeRow{"c8", DType::kComplex64}, TypeRow{"c16", DType::kComplex128},
};

}  // namespace

std::optional<DType> numpy_dtype(std::string_view code) {
  for (const TypeRow& row : kTypes)
    if (row.code == code) return row.dtype;
  return std::nullopt;
}

}  // namespace ckptverify
