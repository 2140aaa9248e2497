// The metadata files of a directory as one description: .metadata, or what a save left behind that
// never came to rename it, or one file a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/container/assembly.h"
#include "formats/container/dcp_metadata.h"

namespace ckptverify {

/// A chunk that another rank has stored as well.
struct DcpReplica {
  std::uint32_t entry = 0;  // into the description's entries
  std::uint32_t chunk = 0;
  std::uint32_t rank = 0;
  DcpSlice slice;
};

struct DcpDescription {
  DcpMetadata metadata;
  std::vector<std::uint32_t> ranks;  // of each entry, who described it first; empty for .metadata
  std::vector<DcpReplica> replicas;
};

/// "3" of "__3.metadata".
std::optional<std::uint32_t> rank_of_metadata(std::string_view member);
bool is_unfinished_metadata(std::string_view member);

/// Reads and claims them; what is wrong with one of several becomes a finding.
Result<DcpDescription> describe_dcp(Assembly& assembly);

}  // namespace ckptverify
