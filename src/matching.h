// Which entry of one checkpoint is which of another: the same component and the same path inside
// it, after the caller's renaming; where names may differ without meaning anything else, also
// those.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ckptverify/comparison.h"

namespace ckptverify {

struct Matching {
  std::vector<std::pair<const Entry*, const Entry*>> both;
  /// One path in both, of different components, or with another part of it as the root: the
  /// entries were filed differently, and none is missing.
  std::vector<std::pair<const Entry*, const Entry*>> refiled;
  std::vector<const Entry*> only_first;
  std::vector<const Entry*> only_second;
  /// Entries that name the same parameter, one side by name and the other by position.
  std::vector<std::pair<const Entry*, const Entry*>> same_parameter;
  std::vector<std::string> notes;
};

/// Entries that are renamed to one path are matched in the order that they are in. An error of kind
/// kUsage if a rule is no regular expression.
Result<Matching> match_entries(const Checkpoint& first, const Checkpoint& second,
                               const std::vector<PathRule>& rules, Names names);

}  // namespace ckptverify
