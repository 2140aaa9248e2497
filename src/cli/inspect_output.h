// What `inspect` shows of a checkpoint: a tree by component for people, JSON for programs.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/statistics.h"
#include "src/cli/command.h"

namespace ckptverify::cli {

/// An entry that was asked for, and what was asked of it.
struct ShownEntry {
  const Entry* entry = nullptr;
  std::string digest = {};  // empty: not asked for, or it has none
  std::unique_ptr<const Statistics> statistics = {};
};

/// Bytes of an entry's tensors; of an alias none, since they are another's.
std::uint64_t own_bytes(const Entry& entry);

/// A tree by component, with sizes and shares of all tensors' bytes.
void print_tree(const Checkpoint& checkpoint, const std::vector<ShownEntry>& shown);

/// The stored checksums that are wrong over bytes of the entries.
std::vector<Finding> damage_of(const Checkpoint& checkpoint, const std::vector<ShownEntry>& shown,
                               Threads threads);

/// What goes into the JSON besides the entries, where it is asked for.
struct InspectExtras {
  std::optional<Json> elements = {};  // of values_json()
  std::vector<Finding> damaged = {};
};
void write_inspect_json(std::ostream& out, const Checkpoint& checkpoint,
                        const std::vector<ShownEntry>& shown, const InspectExtras& extras);

/// The first `limit` elements of a tensor with their indices; in a row what the last dimension has.
Result<void> print_values(const Checkpoint& checkpoint, const Entry& entry, std::uint64_t limit);
Result<Json> values_json(const Checkpoint& checkpoint, const Entry& entry, std::uint64_t limit);

}  // namespace ckptverify::cli
