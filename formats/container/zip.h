// A zip archive as named byte ranges. Every statement that the archive makes twice (local header,
// central directory, data descriptor) is compared; every byte that is no payload is claimed with
// what is known of it. Stored and deflated entries; no encryption, no second disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/coverage.h"
#include "ckptverify/finding.h"
#include "ckptverify/result.h"
#include "ckptverify/tensor.h"

namespace ckptverify {

/// Where an archive lies: in a file of a checkpoint, from `base` on. Offsets in claims, findings
/// and errors are absolute in that file.
struct ArchivePlace {
  Bytes bytes;  // the archive alone
  std::uint32_t file = 0;
  std::uint64_t base = 0;
};

struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;            // of the decoded payload, as the central directory says
  std::uint64_t header_offset = 0;  // absolute, as payload_offset
  std::uint64_t payload_offset = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t size = 0;  // decoded
};

struct ZipArchive {
  std::vector<ZipEntry> entries;    // in the order of the central directory
  std::vector<OwnedRange> framing;  // all that is no payload
  std::vector<Finding> findings;    // what contradicts itself, and bytes after the end
};

/// Errors: no end record or a directory outside of the file (trunc); entries that overlap, names
/// that are equal, equal but for case, absolute or leave the archive (layout); another method than
/// stored and deflate (unsupported).
Result<ZipArchive> read_zip(const ArchivePlace& place);

/// The name in the local header at the very beginning, which is there before the archive is whole;
/// empty if there is none.
std::string_view first_zip_name(Bytes bytes);

/// The payload as a run of the place's file.
Run zip_run(const ArchivePlace& place, const ZipEntry& entry);
/// The decoded payload; `size_max` bounds what is allocated for a deflated one.
Result<std::vector<std::byte>> zip_payload(const ArchivePlace& place, const ZipEntry& entry,
                                           std::uint64_t size_max);

}  // namespace ckptverify
