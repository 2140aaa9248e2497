// NumPy's codes of element types, as .npy headers and pickles of dtypes write them.
#pragma once

#include <optional>
#include <string_view>

#include "ckptverify/tensor.h"

namespace ckptverify {

/// The dtype of a code without its byte order, such as "f4"; nothing for what no tensor has.
std::optional<DType> numpy_dtype(std::string_view code);

}  // namespace ckptverify
