// The .distcp files of a distributed checkpoint against what its metadata says of them: there,
// long enough, of this save, and no byte claimed by two items. And what their items hold, read
// side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/container/assembly.h"
#include "formats/container/dcp_item.h"
#include "formats/container/dcp_sources.h"

namespace ckptverify {

/// One slice, of a chunk or of a replica of one, or an orphan's.
struct DcpStored {
  std::uint32_t entry = 0;  // into the metadata's entries; kNoEntry for an orphan
  std::uint32_t chunk = 0;
  std::optional<std::uint32_t> rank = {};  // of a replica
  DcpSlice slice;
  std::optional<std::uint32_t> file = {};  // of the checkpoint; none: not there to be read
  std::vector<Entry> entries = {};         // relative to the item; empty where it was refused
  bool read = false;

  static constexpr std::uint32_t kNoEntry = ~std::uint32_t{0};
};

/// Findings of one kind that are listed one by one up to a few, and counted beyond.
class FewFindings {
 public:
  explicit FewFindings(std::vector<Finding>& findings) : findings_(findings) {}
  /// `kind` tells what is counted together.
  void add(const std::string& kind, Finding finding);
  /// One finding for all that were left out of a kind.
  void finish();

 private:
  struct Kind {
    std::string name;
    Finding last;
    std::size_t count = 0;
  };
  std::vector<Finding>& findings_;
  std::vector<Kind> kinds_;
};

enum class DcpDepth { kItems, kObjects };

/// Files of everything that is stored, then items: all of them, or those of objects alone. Claims,
/// checksums and findings go into the assembly's checkpoint.
std::vector<DcpStored> read_dcp_files(Assembly& assembly, const DcpDescription& description,
                                      DcpDepth depth, FewFindings& few);

Finding dcp_fault(CauseKind cause, const std::string& subject, const std::string& message,
                  std::vector<Evidence> evidence = {});

}  // namespace ckptverify
