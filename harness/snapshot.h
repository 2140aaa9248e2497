// Copies of checkpoints that no later write can reach: reflinks where the file system has them,
// copied bytes elsewhere, never hard links. A link that leads out of the checkpoint is an error,
// not followed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "ckptverify/result.h"

namespace ckptverify {

enum class CopyMethod {
  kReflink,  // every file that has bytes
  kCopy,
};

std::string_view copy_method_name(CopyMethod method);

struct Snapshot {
  std::filesystem::path path;
  CopyMethod method = CopyMethod::kReflink;
  std::uint64_t file_count = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Copies a file or directory to `target`, which must not exist; its parent is made. After an error
/// what was copied so far stays. Between files and parts of files it looks whether `interrupt` (-1:
/// none) is readable, and breaks off with an error about `target` if it is.
Result<Snapshot> take_snapshot(const std::filesystem::path& checkpoint,
                               const std::filesystem::path& target, int interrupt = -1);

/// Renames within one file system; the parent of `target` is made.
Result<void> move_away(const std::filesystem::path& path, const std::filesystem::path& target);

}  // namespace ckptverify
