// A dataset of HDF5 to a tensor: element types, and pieces from contiguous, compact and chunked
// storage.
#pragma once

#include <optional>
#include <string>

#include "ckptverify/tensor.h"
#include "formats/container/hdf5_probe.h"

namespace ckptverify {

/// The element type that a stored type is by itself; none for an opaque one and for all others.
std::optional<DType> dtype_of_hdf5(const Hdf5Type& type);

/// Whether elements of `dtype` may be stored as that type: its own type, or raw bytes of its size.
bool hdf5_holds(const Hdf5Type& type, DType dtype);

struct Hdf5Tensor {
  Tensor tensor;
  std::uint64_t unwritten_count = 0;  // pieces that were never written: the fill value stands there
};

/// Unsupported where a filter or layout is not known; malformed where chunks do not fit the shape.
Result<Hdf5Tensor> tensor_of_hdf5(const Hdf5Dataset& dataset, DType dtype);

}  // namespace ckptverify
