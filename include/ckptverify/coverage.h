// Who owns which byte of which file. Readers claim ranges while they read; gaps and overlaps are
// then computed, so that no reader can merely assert that it read everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ckptverify {

enum class Owner {
  kTensor,        // tensor data
  kMetadata,      // names, types, shapes, values, checksums
  kFraming,       // headers, directories, separators of the container, checked against their rules
  kPadding,       // filler whose content is checked
  kUnverifiable,  // read and meaningless, or meaningful and protected by nothing
};

std::string_view owner_name(Owner owner);

struct ByteRange {
  std::uint32_t file = 0;  // index into Checkpoint::files
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct OwnedRange {
  ByteRange range;
  Owner owner = Owner::kFraming;
  std::string label;  // the entry's path, or the name of the structure
};

struct Overlap {
  OwnedRange first;
  OwnedRange second;
};

class SortedClaims;

class Coverage {
 public:
  /// Empty ranges own nothing and are dropped. The same storage is claimed once, however many
  /// views.
  void own(OwnedRange range);

  /// Each of these sorts all claims: who asks more than once keeps a SortedClaims.
  std::vector<OwnedRange> sorted() const;
  std::vector<ByteRange> gaps(std::span<const std::uint64_t> file_sizes) const;
  std::vector<Overlap> overlaps() const;
  std::uint64_t size(Owner owner) const;

  /// Takes over another coverage whose files begin at `first_file` of this one.
  void absorb(Coverage other, std::uint32_t first_file);

 private:
  friend class SortedClaims;
  std::vector<OwnedRange> ranges_;
};

/// The claims of a coverage in order of file and offset, sorted once; a distributed checkpoint has
/// millions. A view: the coverage outlives it, unchanged.
class SortedClaims {
 public:
  explicit SortedClaims(const Coverage& coverage);

  std::size_t count() const { return order_.size(); }
  const OwnedRange& operator[](std::size_t index) const { return ranges_[order_[index].index]; }
  /// Ranges of the files that nobody owns; `file_sizes` in bytes, one a file.
  std::vector<ByteRange> gaps(std::span<const std::uint64_t> file_sizes) const;
  std::vector<Overlap> overlaps() const;
  /// Bytes owned in that way.
  std::uint64_t size(Owner owner) const;

 private:
  struct Place {
    std::uint64_t offset = 0;
    std::uint32_t file = 0;
    std::size_t index = 0;  // into the claims
  };
  std::span<const OwnedRange> ranges_;
  std::vector<Place> order_;  // small, so that sorting moves no claims
};

}  // namespace ckptverify
