// What the entries of a distributed checkpoint are for: the planner's keys tell what names joined
// by dots do not.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// The keys of one entry, from the state's root on; of one without a planner's path its name's
/// first part and the rest.
using DcpKeys = std::vector<std::string>;

DcpKeys dcp_keys_of_path(const std::string& path);

/// Sets component, rank and root of every entry; `keys` are as many.
void assign_dcp_components(std::vector<Entry>& entries, const std::vector<const DcpKeys*>& keys);

}  // namespace ckptverify
