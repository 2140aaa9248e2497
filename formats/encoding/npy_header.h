// The header of NumPy's own file format: element type, order and shape of one array.
//
//   | 93 "NUMPY" | u8 major | u8 minor | u16 or, from version 2 on, u32 size | text, '\n' | data |
//
//   text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } and spaces; Latin-1, UTF-8 in
//   version 3. It is a Python literal and read as one; nothing is evaluated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"
#include "ckptverify/tensor.h"

namespace ckptverify {

struct NpyHeader {
  std::string descr;           // "<f4"; the whole list of a structured type
  std::optional<DType> dtype;  // none: no tensor has such elements
  /// Bytes an element where descr tells them: strings, times, raw bytes; none for records and for
  /// objects.
  std::optional<std::uint64_t> element_size;
  ByteOrder byte_order = ByteOrder::kLittle;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
  std::uint64_t data_offset = 0;  // from the first byte of the array's file
};

bool has_npy_magic(Bytes bytes);

/// Offsets of errors count from the first byte. kTrunc where the bytes end inside the header.
Result<NpyHeader> parse_npy_header(Bytes bytes);

/// The array as a tensor whose bytes are `run`, decoded, from `header.data_offset` on, or from
/// `first_byte` of the run. Malformed where the run has another size than the shape: kTrunc where
/// it is shorter, kLayout where it is longer.
Result<Tensor> npy_tensor(const NpyHeader& header, const Run& run);

/// Whether data of exactly that many bytes follow the header, as far as it tells.
Result<void> check_npy_size(const NpyHeader& header, std::uint64_t file_size);

}  // namespace ckptverify
