// Names that differ and mean the same: wrappers' prefixes, and an optimizer's parameters by name or
// by position.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// An entry under the name that it is matched by.
struct NamedEntry {
  std::string label;  // of its component
  std::string path;   // inside the component
  const Entry* entry = nullptr;
};

/// The path without the parts that DataParallel, torch.compile, FSDP and activation checkpointing
/// put into it.
std::string without_wrappers(const std::string& path);

/// Renames an optimizer's state on one side where it goes by position ("state.0.exp_avg") and goes
/// by name on the other, as both sides' lists of parameters say. The pairs of positions and names
/// are taken out of the two lists. The number of parameters that were renamed.
std::uint64_t name_optimizer_state(
    std::vector<NamedEntry>& first, std::vector<NamedEntry>& second,
    std::vector<std::pair<const Entry*, const Entry*>>& same_parameter);

}  // namespace ckptverify
