// The index beside the shards of a Hugging Face model, and the proof that both say the same: every
// tensor of the index is in the shard that it names, every tensor of a shard is in the index, every
// shard is there.
//
//   {"metadata": {"total_size": bytes of all tensors}, "weight_map": {"tensor": "file"}}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ckptverify/result.h"
#include "formats/container/assembly.h"

namespace ckptverify {

struct ShardIndex {
  std::optional<double> total_size = {};  // bytes; some writers store a float
  std::map<std::string, std::string> file_of;
};

/// Errors (kStStruct): no strict JSON, no weight_map, a file name that is no plain name.
Result<ShardIndex> parse_shard_index(std::string_view text);

/// The shards are named <stem>-00001-of-00004<suffix>.
struct ShardNames {
  std::string stem;    // "model"
  std::string suffix;  // ".safetensors"
};

/// Reads the index of that name and all shards into the assembly, under the role.
void add_indexed_shards(Assembly& assembly, const std::string& index_name, const ShardNames& names,
                        const Role& role);

/// Shards without an index: each is read, none may be missing, and the missing index is a fault.
void add_unindexed_shards(Assembly& assembly, const ShardNames& names, const Role& role);

}  // namespace ckptverify
