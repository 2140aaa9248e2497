// How Python objects are told apart by their names alone, and how their keys become paths.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "formats/encoding/pickle.h"

namespace ckptverify {

/// "path.key"; the key alone below the root.
std::string joined(const std::string& path, std::string_view key);
/// A dictionary's key as a part of a path: text as it is, other objects as Python prints them.
std::string key_text(const PickleNode& key, unsigned depth = 0);

/// The attributes that BUILD sets: a dictionary, or a pair of one and the slots'.
std::vector<const PickleNode*> attribute_dicts(PickleItems states);
/// The value of the last attribute of this name, null for none. Looks at no more than `pairs_max`
/// of the attributes, from the last one back.
const PickleNode* attribute(const PickleNode& object, std::string_view name,
                            std::size_t pairs_max = std::numeric_limits<std::size_t>::max());

/// A pickled nn.Module, of whatever class.
bool is_module(const PickleNode& node);
/// An object of a class that TorchScript or LibTorch made up.
bool is_script_object(const PickleNode& node);

/// Classes that are dictionaries or lists in all but name.
bool is_mapping_call(std::string_view name);
bool is_list_call(std::string_view name);
/// Names of torch that are values: dtypes, quantization schemes, layouts, memory formats.
bool is_named_value(std::string_view name);

}  // namespace ckptverify
