// From the inert tree of a pickle to entries: dictionaries, lists, modules and objects become
// paths, tensors and plain values become what stands under them, and every object of a class that
// we do not model is listed, with the tensors inside of it.
#pragma once

#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"
#include "formats/encoding/pickle.h"
#include "formats/encoding/torch_tensor.h"

namespace ckptverify {

struct TorchObjects {
  /// Of lists in the order of paths, of dictionaries in the pickle's; without components, aliases.
  std::vector<Entry> entries;
  std::vector<Finding> findings;
  std::vector<std::string> uninterpreted;
};

/// The root's own path is empty, as is the entry's of a bare tensor. Errors: a tensor that
/// contradicts itself or its storage; a tree that is deeper or larger than any state.
Result<TorchObjects> read_torch_objects(const PickleTree& tree, const TorchContext& context);

/// Components and their roots by what the root object is: a bare state dict or module is a model,
/// {state, param_groups} an optimizer, and so on; a dictionary of components by its keys.
void assign_torch_components(const PickleNode& root, std::vector<Entry>& entries);

/// Sets alias_of for tensors of the same stored elements; the entries are sorted.
void find_aliases(std::vector<Entry>& entries);

}  // namespace ckptverify
