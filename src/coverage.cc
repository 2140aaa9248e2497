// Claims on byte ranges, and what follows from them once they are sorted: gaps, overlaps, totals.
#include "ckptverify/coverage.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

namespace ckptverify {

namespace {

constexpr std::array<std::string_view, 5> kOwnerNames = {"tensor", "metadata", "framing", "padding",
                                                         "unverifiable"};

/// The end of a range; one that leaves 64 bits ends with them.
std::uint64_t end_of(const ByteRange& range) {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - range.offset;
  return range.offset + std::min(range.size, room);
}

auto key(const OwnedRange& owned) {
  return std::tie(owned.range.file, owned.range.offset, owned.range.size, owned.owner, owned.label);
}

}  // namespace

std::string_view owner_name(Owner owner) {
  return kOwnerNames[static_cast<std::size_t>(owner)];
}

void Coverage::own(OwnedRange range) {
  if (range.range.size > 0) ranges_.push_back(std::move(range));
}

std::vector<OwnedRange> Coverage::sorted() const {
  std::vector<OwnedRange> ranges = ranges_;
  std::sort(ranges.begin(), ranges.end(),
            [](const OwnedRange& a, const OwnedRange& b) { return key(a) < key(b); });
  const auto same = [](const OwnedRange& a, const OwnedRange& b) { return key(a) == key(b); };
  ranges.erase(std::unique(ranges.begin(), ranges.end(), same), ranges.end());
  return ranges;
}

std::vector<ByteRange> Coverage::gaps(std::span<const std::uint64_t> file_sizes) const {
  std::vector<ByteRange> gaps;
  const std::vector<OwnedRange> ranges = sorted();
  auto next = ranges.begin();
  for (std::uint32_t file = 0; file < file_sizes.size(); ++file) {
    std::uint64_t covered = 0;
    const auto gap_until = [&](std::uint64_t end) {
      if (end > covered) gaps.push_back({.file = file, .offset = covered, .size = end - covered});
    };
    for (; next != ranges.end() && next->range.file == file; ++next) {
      gap_until(std::min(next->range.offset, file_sizes[file]));
      covered = std::max(covered, end_of(next->range));
    }
    gap_until(file_sizes[file]);
  }
  return gaps;
}

std::vector<Overlap> Coverage::overlaps() const {
  std::vector<Overlap> overlaps;
  const std::vector<OwnedRange> ranges = sorted();
  // Each claim that begins inside an earlier one is named once, with the one that reaches furthest:
  // all pairs would be quadratic in a hostile file.
  std::size_t furthest = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const bool same_file = ranges[i].range.file == ranges[furthest].range.file;
    const std::uint64_t reach = end_of(ranges[furthest].range);
    if (same_file && ranges[i].range.offset < reach)
      overlaps.push_back({.first = ranges[furthest], .second = ranges[i]});
    if (!same_file || end_of(ranges[i].range) > reach) furthest = i;
  }
  return overlaps;
}

std::uint64_t Coverage::size(Owner owner) const {
  std::uint64_t size = 0;
  std::uint32_t file = 0;
  std::uint64_t covered = 0;
  for (const OwnedRange& owned : sorted()) {
    if (owned.owner != owner) continue;
    if (owned.range.file != file) covered = 0;
    file = owned.range.file;
    const std::uint64_t end = end_of(owned.range);
    if (end > covered) size += end - std::max(covered, owned.range.offset);
    covered = std::max(covered, end);
  }
  return size;
}

void Coverage::absorb(const Coverage& other, std::uint32_t first_file) {
  for (OwnedRange owned : other.ranges_) {
    owned.range.file += first_file;
    ranges_.push_back(std::move(owned));
  }
}

}  // namespace ckptverify
