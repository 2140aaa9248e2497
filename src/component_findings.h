// Says which components are in a checkpoint, which are empty or absent, and for which ranks.
#pragma once

#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// The findings of "static.components": what is required and not there, ranks and generators that
/// are missing among others, and one line on all components.
std::vector<Finding> component_findings(const Checkpoint& checkpoint,
                                        const std::vector<Component>& required);

}  // namespace ckptverify
