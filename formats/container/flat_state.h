// A state whose keys are flat ("model.wte.weight"), as safetensors stores it: what it is for can
// only be told from the beginnings of its names.
#pragma once

#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// A state dict of one model keeps its whole names, also where all begin with "model."; names under
/// "optimizer.", "rng." and their like make the beginnings components. The same rule as for a
/// torch.save file of such a dictionary, so that both have one fingerprint.
void assign_flat_components(std::vector<Entry>& entries);

}  // namespace ckptverify
