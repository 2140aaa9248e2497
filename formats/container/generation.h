// Which step the parts of a checkpoint were saved at, as far as they say so themselves. A part of
// another save has a count that the rest cannot have; only such contradictions are faults, all
// differences with a lawful reason are warnings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// The whole number at that path: a value, or a tensor of one element. The entries need not be
/// sorted.
std::optional<std::int64_t> whole_number(const Checkpoint& checkpoint, std::string_view path);

/// The most updates that any parameter has seen: the greatest `step` of the optimizer's states, of
/// one rank or of all. None where the optimizer counts none, and in listings without data.
std::optional<std::int64_t> optimizer_steps(const Checkpoint& checkpoint,
                                            std::optional<std::uint32_t> rank = {});

/// Updates that the scheduler under `root` ("scheduler.") has seen; none for one that counts
/// evaluations instead (ReduceLROnPlateau).
std::optional<std::int64_t> scheduler_steps(const Checkpoint& checkpoint, const std::string& root);

/// Notes under static.generation that parts are of different saves (uncommitted), or may be.
void mixed_steps(Checkpoint& checkpoint, Status status, const std::string& subject,
                 const std::string& message, std::vector<Evidence> evidence);

}  // namespace ckptverify
