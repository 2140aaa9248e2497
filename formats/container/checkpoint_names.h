// What the name of a checkpoint in a folder of several says: its step, and whether its writer has
// not yet given it its last name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ckptverify {

struct CheckpointName {
  std::optional<std::uint64_t> step = {};  // none for "last.ckpt", "release"
  std::string family;                      // the last name with '#' for its numbers: "step-#"
  bool temporary = false;                  // ".tmp-step-5", "step-5.tmp", "tmp-checkpoint-5"
};

/// A directory's name; none where it names no checkpoint.
std::optional<CheckpointName> directory_checkpoint_name(std::string_view name);

/// A file's name, with an extension that checkpoints have. Files of ranks and of shards name no
/// checkpoint of their own.
std::optional<CheckpointName> file_checkpoint_name(std::string_view name);

/// An extension under which checkpoints of one file are kept.
bool has_checkpoint_extension(std::string_view name);

}  // namespace ckptverify
