// The checksums that the bytes of some tensors lie under, in a checkpoint of their own for who
// verifies all checksums of one.
#include <algorithm>
#include <tuple>

#include "src/cli/inspect_output.h"

namespace ckptverify::cli {
namespace {

struct Range {
  std::uint32_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

void add_ranges(const Node& node, std::vector<Range>& ranges) {
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    for (const Piece& piece : tensor->pieces)
      if (piece.run.owned == nullptr)
        ranges.push_back(
            {piece.run.file, piece.run.offset, piece.run.offset + piece.run.stored_size});
  } else if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    for (const auto& [name, part] : (*composite)->parts) add_ranges(part, ranges);
  }
}

/// Sorted and without those that lie in another, so that ends are sorted as well.
std::vector<Range> ranges_of(const std::vector<ShownEntry>& shown) {
  std::vector<Range> all;
  for (const ShownEntry& one : shown) add_ranges(one.entry->node, all);
  std::sort(all.begin(), all.end(), [](const Range& a, const Range& b) {
    return std::tie(a.file, a.begin) < std::tie(b.file, b.begin);
  });
  std::vector<Range> ranges;
  for (const Range& range : all) {
    if (!ranges.empty() && ranges.back().file == range.file && range.begin <= ranges.back().end)
      ranges.back().end = std::max(ranges.back().end, range.end);
    else
      ranges.push_back(range);
  }
  return ranges;
}

bool touches(const std::vector<Range>& ranges, const Run& run) {
  const auto next = std::lower_bound(
      ranges.begin(), ranges.end(), run, [](const Range& range, const Run& wanted) {
        return std::tie(range.file, range.end) <= std::tie(wanted.file, wanted.offset);
      });
  return next != ranges.end() && next->file == run.file &&
         next->begin < run.offset + run.stored_size;
}

}  // namespace

std::vector<Finding> damage_of(const Checkpoint& checkpoint, const std::vector<ShownEntry>& shown,
                               Threads threads) {
  const std::vector<Range> ranges = ranges_of(shown);
  Checkpoint part;
  part.files = checkpoint.files;
  for (const ShownEntry& one : shown) part.entries.push_back(*one.entry);
  for (const StoredChecksum& checksum : checkpoint.checksums) {
    const bool wanted = checksum.entry.empty() ? touches(ranges, checksum.run)
                                               : find_entry(part, checksum.entry) != nullptr;
    if (wanted) part.checksums.push_back(checksum);
  }
  std::vector<Finding> damaged;
  if (part.checksums.empty()) return damaged;
  for (Finding& finding : verify_checksums(part, threads))
    if (finding.status != Status::kPass) damaged.push_back(std::move(finding));
  return damaged;
}

}  // namespace ckptverify::cli
