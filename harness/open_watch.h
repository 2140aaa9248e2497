// Whether anybody opens a file below a path, as the kernel tells it (inotify). For a checkpoint
// that only the process under test knows: a restore that never opens it restored something else.
#pragma once

#include <filesystem>
#include <optional>

#include "harness/descriptor.h"

namespace ckptverify {

class OpenWatch {
 public:
  /// From now on; what cannot be watched is not known.
  explicit OpenWatch(const std::filesystem::path& path);

  /// Nothing where it is not known.
  std::optional<bool> opened() const;

 private:
  Descriptor descriptor_;
  bool complete_ = false;
};

}  // namespace ckptverify
