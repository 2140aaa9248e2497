// index.json of a sharded state directory, parsed and checked by itself: which shards there are,
// which tensor lies in which of them, aliases and plain values. docs/formats/sharded.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/result.h"
#include "ckptverify/tensor.h"
#include "ckptverify/value.h"

namespace ckptverify {

struct ShardedFile {
  std::string name;  // a plain file name
  std::uint64_t size = 0;
  std::string digest;  // XXH3-128 of the file, 32 lower-case hexadecimal digits
};

struct ShardedTensor {
  std::string path;
  std::size_t shard = 0;  // index into ShardedIndex::shards
  DType dtype = DType::kFloat32;
  std::vector<std::uint64_t> shape;
};

struct ShardedAlias {
  std::string path;
  std::size_t tensor = 0;  // index into ShardedIndex::tensors
};

struct ShardedIndex {
  std::string format;  // "hdf5", "safetensors" or "torch"
  std::uint64_t step = 0;
  std::vector<ShardedFile> shards;
  std::vector<ShardedTensor> tensors;
  std::vector<ShardedAlias> aliases;
  std::vector<std::pair<std::string, Value>> values;  // leaves by path
};

/// Errors speak of index.json without naming it; their cause is st-struct.
Result<ShardedIndex> parse_sharded_index(std::string_view text);

}  // namespace ckptverify
