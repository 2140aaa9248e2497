// Names on disk of sharded state directories: which directory is one, and what a directory's name
// says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

}  // namespace ckptverify
