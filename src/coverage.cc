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

void Coverage::absorb(Coverage other, std::uint32_t first_file) {
  for (OwnedRange& owned : other.ranges_) {
    owned.range.file += first_file;
    ranges_.push_back(std::move(owned));
  }
}

std::vector<OwnedRange> Coverage::sorted() const {
  const SortedClaims claims(*this);
  std::vector<OwnedRange> ranges;
  ranges.reserve(claims.count());
  for (std::size_t i = 0; i < claims.count(); ++i) ranges.push_back(claims[i]);
  return ranges;
}

std::vector<ByteRange> Coverage::gaps(std::span<const std::uint64_t> file_sizes) const {
  return SortedClaims(*this).gaps(file_sizes);
}

std::vector<Overlap> Coverage::overlaps() const {
  return SortedClaims(*this).overlaps();
}

std::uint64_t Coverage::size(Owner owner) const {
  return SortedClaims(*this).size(owner);
}

SortedClaims::SortedClaims(const Coverage& coverage) : ranges_(coverage.ranges_) {
  order_.reserve(ranges_.size());
  for (const OwnedRange& owned : ranges_)
    order_.push_back(
        {.offset = owned.range.offset, .file = owned.range.file, .index = order_.size()});
  std::sort(order_.begin(), order_.end(), [this](const Place& a, const Place& b) {
    if (a.file != b.file || a.offset != b.offset)
      return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
    return key(ranges_[a.index]) < key(ranges_[b.index]);
  });
  const auto same = [this](const Place& a, const Place& b) {
    return a.file == b.file && a.offset == b.offset &&
           key(ranges_[a.index]) == key(ranges_[b.index]);
  };
  order_.erase(std::unique(order_.begin(), order_.end(), same), order_.end());
}

std::vector<ByteRange> SortedClaims::gaps(std::span<const std::uint64_t> file_sizes) const {
  std::vector<ByteRange> gaps;
  std::size_t next = 0;
  for (std::uint32_t file = 0; file < file_sizes.size(); ++file) {
    std::uint64_t covered = 0;
    const auto gap_until = [&](std::uint64_t end) {
      if (end > covered) gaps.push_back({.file = file, .offset = covered, .size = end - covered});
    };
    for (; next < order_.size() && order_[next].file == file; ++next) {
      gap_until(std::min(order_[next].offset, file_sizes[file]));
      covered = std::max(covered, end_of((*this)[next].range));
    }
    gap_until(file_sizes[file]);
  }
  return gaps;
}

std::vector<Overlap> SortedClaims::overlaps() const {
  std::vector<Overlap> overlaps;
  // Each claim that begins inside an earlier one is named once, with the one that reaches furthest:
  // all pairs would be quadratic in a hostile file.
  std::size_t furthest = 0;
  for (std::size_t i = 1; i < order_.size(); ++i) {
    const bool same_file = order_[i].file == order_[furthest].file;
    const std::uint64_t reach = end_of((*this)[furthest].range);
    if (same_file && order_[i].offset < reach)
      overlaps.push_back({.first = (*this)[furthest], .second = (*this)[i]});
    if (!same_file || end_of((*this)[i].range) > reach) furthest = i;
  }
  return overlaps;
}

std::uint64_t SortedClaims::size(Owner owner) const {
  std::uint64_t size = 0;
  std::uint32_t file = 0;
  std::uint64_t covered = 0;
  for (const Place& place : order_) {
    const OwnedRange& owned = ranges_[place.index];
    if (owned.owner != owner) continue;
    if (place.file != file) covered = 0;
    file = place.file;
    const std::uint64_t end = end_of(owned.range);
    if (end > covered) size += end - std::max(covered, place.offset);
    covered = std::max(covered, end);
  }
  return size;
}

}  // namespace ckptverify
