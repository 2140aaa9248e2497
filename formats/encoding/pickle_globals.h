// The classes and functions that a pickle names: one spelling for all Python versions, and which of
// them no checkpoint has a reason to name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/finding.h"
#include "formats/encoding/pickle.h"

namespace ckptverify {

/// "builtins.set", "numpy.core.multiarray.scalar": Python 2's and NumPy 2's modules under their
/// usual names. Empty for what is no global.
std::string qualified_name(const PickleNode& node);

/// The qualified name of what a call calls or an object is an instance of; empty for what has none.
std::string callee(const PickleNode& node);
/// The argument, or null where there are fewer.
const PickleNode* argument(const PickleNode& node, std::size_t index);

/// A name that runs code, reaches the operating system, or loads another pickle.
bool is_dangerous(std::string_view qualified_name);

/// One "static.pickle" failure for every dangerous name, and one warning that lists the classes
/// that loading needs beyond PyTorch, NumPy and Python itself.
std::vector<Finding> judge_globals(const PickleTree& tree);

}  // namespace ckptverify
