// The part of a GGUF file before its tensors' data: version, metadata, and what each tensor is and
// where it lies. Nothing of it is believed about the data: who uses it compares it with the file.
//
//   | "GGUF" | u32 version | u64 tensors | u64 pairs | pair ... | tensor info ... | zeros | data |
//
//   string: u64 size, bytes.  pair: string key, u32 type, value.
//   info: string name, u32 rank, u64 dimension (fastest first) ..., u32 type, u64 offset in data
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// How elements are stored: `block_elements` of them in `block_bytes`.
struct GgufType {
  std::uint32_t id = 0;
  std::string_view name = {};
  std::uint64_t block_elements = 1;
  std::uint64_t block_bytes = 0;
  std::optional<DType> dtype = {};  // none: quantized in blocks
};

/// The row of a type; null for one that has been removed or is newer than this table.
const GgufType* gguf_type(std::uint32_t id);

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // row-major: the slowest dimension first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;       // in the data
  std::uint64_t info_offset = 0;  // of the description, absolute
};

struct GgufHeader {
  ByteOrder byte_order = ByteOrder::kLittle;
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::vector<Entry> metadata;  // paths are the keys
  std::vector<GgufTensor> tensors;
  std::uint64_t end = 0;  // of the descriptions, absolute
};

bool has_gguf_magic(Bytes file);

/// Malformed where the bytes break a rule, kTrunc where they end early; unsupported for version 1
/// and for versions that are not known.
Result<GgufHeader> parse_gguf_header(Bytes file);

}  // namespace ckptverify
