// What the entries of one state are for, told from its names: the one rule for every layout in
// which a state is a list of names, so that the same state has the same components and the same
// fingerprint in a safetensors file, an npz archive, an HDF5 file and a torch.save dictionary.
// docs/fingerprint.md, "Which component", says it for users.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// Keys at the root of a state under which the layout itself keeps others: of a dictionary, of a
/// group. Empty where "model.w" is one name and nothing tells what its first part is.
using GroupNames = std::set<std::string, std::less<>>;

/// Sets component and root of every entry.
void assign_state_components(std::vector<Entry>& entries, const GroupNames& groups);

}  // namespace ckptverify
