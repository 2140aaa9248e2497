// Which entry of one checkpoint is which of another: the same component and the same path inside
// it, after the caller's renaming.
#pragma once

#include <utility>
#include <vector>

#include "ckptverify/comparison.h"

namespace ckptverify {

struct Matching {
  std::vector<std::pair<const Entry*, const Entry*>> both;
  std::vector<const Entry*> only_first;
  std::vector<const Entry*> only_second;
};

/// Entries that are renamed to one path are matched in the order that they are in. An error of kind
/// kUsage if a rule is no regular expression.
Result<Matching> match_entries(const Checkpoint& first, const Checkpoint& second,
                               const std::vector<PathRule>& rules);

}  // namespace ckptverify
