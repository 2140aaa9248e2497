// Names on disk of sharded state directories: which directory is one, which holds several, and what
// a directory's name says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/source.h"

namespace ckptverify {

/// The last part of where the directory is, or of its name where it is in memory.
std::string directory_name(const Source& directory);

/// 5 for "step-5".
std::optional<std::uint64_t> step_of_name(std::string_view name);
/// A directory that its writer has not yet renamed: ".tmp-step-5".
bool is_temporary_name(std::string_view name);

/// Complete or not: shards, an index or its digest lie in it.
bool is_sharded_checkpoint(const Source& directory);

struct ShardedDirectory {
  std::string name;
  bool complete = false;  // has an index with its digest, and its last name
};

/// Those directly below, in order of their steps.
std::vector<ShardedDirectory> sharded_checkpoints_in(const Source& directory);

/// The usage error for a directory that holds checkpoints and is none.
Error name_one_of(const Source& directory);

}  // namespace ckptverify
