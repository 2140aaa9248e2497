// Where an entry of one of a checkpoint's files goes, and that what several ranks' files say alike
// is listed once: only what a rank says otherwise stands under its own name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

struct Placement {
  std::string path;
  Component component = Component::kOther;
  std::optional<std::uint32_t> rank = {};
  std::size_t root_size = 0;
};

class SaidOnce {
 public:
  /// Moves the entry. False where the same value or object has been placed at that path before;
  /// what is said otherwise goes below `own_root` ("deepspeed.rank_1.") and to no component.
  /// Tensors are not compared: a second one at a path is always the rank's own.
  bool place(Entry& entry, const Placement& target, const std::string& own_root);

 private:
  std::map<std::string, Node> said_;
};

}  // namespace ckptverify
