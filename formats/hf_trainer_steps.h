// Whether the parts of a Trainer's checkpoint were saved at one step.
#pragma once

#include "ckptverify/source.h"
#include "formats/container/assembly.h"

namespace ckptverify {

/// Against the directory's name (step-count), and against each other (uncommitted).
void check_hf_trainer_steps(Assembly& assembly);

}  // namespace ckptverify
