// A directory that PyTorch's distributed checkpoint wrote, read into an assembly: the metadata says
// which chunk of which tensor lies where, the items of the .distcp files prove it. For directories
// that hold nothing else, and for layouts of frameworks that put files of their own beside.
//
//   .metadata             a pickle, written last
//   __<rank>_<n>.distcp   items end to end, each a torch.save archive
//   __<rank>.metadata     in place of .metadata where ranks save without talking to each other
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "formats/container/assembly.h"
#include "formats/container/dcp_metadata.h"

namespace ckptverify {

bool is_dcp_file(std::string_view member);
/// Metadata or items of a save lie directly in the directory.
bool has_dcp_files(const Source& directory);

struct DcpOptions {
  /// The path of an entry in the checkpoint; none: its name. Components are then told by the
  /// path's first part.
  std::function<std::string(const DcpEntry&)> path = {};
};

/// Takes over the files directly in the assembly's directory: files, entries with components,
/// coverage, checksums and findings. At Depth::kListing no item of a tensor is opened. An error
/// where there is no metadata to go by (uncommitted) or none can be read; then no file is used.
Result<void> read_dcp_into(Assembly& assembly, const DcpOptions& options = {});

}  // namespace ckptverify
