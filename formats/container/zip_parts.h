// What the two halves of reading a zip archive share: the records of its directory, and what is
// noted on the way: claims on bytes, and statements that contradict each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/container/zip.h"

namespace ckptverify::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint64_t kLocalSize = 30;
inline constexpr std::uint16_t kFlagDescriptor = 0x0008;
inline constexpr std::uint16_t kFlagsKnown = 0x080e;  // descriptor, UTF-8, and deflate's effort
inline constexpr std::uint16_t kExtraZip64 = 0x0001;
inline constexpr std::uint16_t kExtraPadding = 0x4246;  // "FB"

/// "; found 3, expected 4".
std::string numbers(std::uint64_t found, std::uint64_t expected);

/// The same of four bytes that mark a record: "; found 0x00000000, expected 0x04034b50".
std::string signatures(std::uint32_t found, std::uint32_t expected);

/// Offsets are in the archive here and absolute in what is noted.
class Notes {
 public:
  explicit Notes(const ArchivePlace& place) : place_(place) {}
  const ArchivePlace& place() const { return place_; }
  void claim(std::uint64_t offset, std::uint64_t size, Owner owner, std::string label);
  void disagree(CauseKind cause, std::uint64_t offset, const std::string& message);
  /// Two places of the archive say one thing, or it is bitrot.
  void compare(std::uint64_t offset, std::string_view what, std::uint64_t found,
               std::uint64_t expected);
  Error fault(std::uint64_t offset, CauseKind cause, std::string message) const;
  ByteReader reader_at(Bytes part, std::uint64_t offset) const {
    return ByteReader(part, place_.base + offset);
  }
  std::vector<OwnedRange> framing;
  std::vector<Finding> findings;

 private:
  ArchivePlace place_;
};

struct CentralHeader {
  std::uint16_t version_needed = 0, flags = 0, method = 0, time = 0, date = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored_size = 0, size = 0, local_offset = 0;
  std::string name;
  bool zip64 = false;
};

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
  std::vector<CentralHeader> headers = {};
};

/// From the end record backwards to the entries of the directory.
Result<Directory> read_directory(Notes& notes);

struct ExtraField {
  std::uint16_t id = 0;
  std::uint64_t offset = 0;  // of its id
  Bytes data;
};

Result<std::vector<ExtraField>> split_extra(const Notes& notes, Bytes extra, std::uint64_t at);
/// Claims a field that says nothing about the payload; one of an unknown kind is a finding.
void claim_other_extra(Notes& notes, const ExtraField& field);

}  // namespace ckptverify::zip
