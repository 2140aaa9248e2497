// The header of a safetensors file, validated as strictly as the format's own reader does it: the
// tensors tile the buffer without a hole and end exactly at the end of the file. For whole files
// and for those that are a part of a larger checkpoint.
//
//   | u64 N | N bytes of JSON, right-padded with spaces | buffer: the tensors, end to end |
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/checkpoint.h"
#include "formats/encoding/json_members.h"

namespace ckptverify {

struct SafetensorsType {
  std::string_view name;  // "F32"
  std::uint64_t bits = 0;
  std::optional<DType> dtype = {};  // none: PyTorch has no such element type
};

struct SafetensorsTensor {
  std::string name;
  std::uint64_t offset = 0;  // of its member in the file, for messages
  SafetensorsType type = {};
  std::vector<std::uint64_t> shape = {};  // elements of the type, as written
  std::uint64_t begin = 0;                // absolute in the file
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;                     // in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  // __metadata__
  std::optional<TextRange> metadata_range = {};               // its member in the JSON text
  std::uint64_t json_size = 0;                                // without padding
  std::uint64_t buffer_begin = 0;                             // 8 + N
};

/// Begins with a size that a header may have, and with '{' after it.
bool begins_as_safetensors(Bytes file);

/// Errors: kTrunc where the file ends too early, kStStruct for everything else.
Result<SafetensorsHeader> read_safetensors_header(Bytes file);

/// Claims all bytes before the buffer, of the checkpoint's file of that number.
void own_safetensors_header(const SafetensorsHeader& header, std::uint32_t file,
                            Coverage& coverage);

/// The tensor in the checkpoint's file of that number; none where PyTorch has no such tensor.
std::optional<Tensor> safetensors_tensor(const SafetensorsTensor& tensor, std::uint32_t file);

}  // namespace ckptverify
