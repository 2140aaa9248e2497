// The end of a zip archive: end record, zip64 records, central directory.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <optional>

#include "formats/container/zip_parts.h"

namespace ckptverify::zip {
namespace {

constexpr std::uint32_t kCentralSignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::uint64_t kCentralSize = 46;
constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kEnd64Size = 56;
constexpr std::uint64_t kLocator64Size = 20;
// An end record is looked for this far before the end of the file: its comment can have 65535
// bytes, and PyTorch itself tolerates about 64 KiB of trailing bytes. Beyond, the archive is cut.
constexpr std::uint64_t kEndSearchBytes = 1 << 20;
// Extra fields of other zip writers, which say nothing about the payload: timestamps and owners.
constexpr std::uint16_t kExtraHarmless[] = {0x000a, 0x5455, 0x5855, 0x7855, 0x7875, 0xcafe};

Result<std::uint64_t> find_end(const Notes& notes) {
  const Bytes bytes = notes.place().bytes;
  const std::uint64_t size = bytes.size();
  const std::uint64_t stop = size > kEndSearchBytes ? size - kEndSearchBytes : 0;
  for (std::uint64_t at = size; at-- > stop;) {
    if (size - at < kEndSize || bytes[at] != std::byte{'P'}) continue;
    ByteReader reader(bytes.subspan(at));
    CKPTVERIFY_TRY(const auto signature, reader.u32());
    if (signature == kEndSignature) return at;
  }
  return notes.fault(size, CauseKind::kTrunc,
                     "zip archive has no end of central directory; found " + std::to_string(size) +
                         " bytes without one, expected it as the last " + std::to_string(kEndSize) +
                         " bytes");
}

Result<Directory> read_end(Notes& notes, std::uint64_t end) {
  ByteReader reader = notes.reader_at(notes.place().bytes.subspan(end), end);
  CKPTVERIFY_TRY_VOID(reader.seek(4));
  CKPTVERIFY_TRY(const auto disk, reader.u16());
  CKPTVERIFY_TRY(const auto directory_disk, reader.u16());
  CKPTVERIFY_TRY(const auto disk_count, reader.u16());
  CKPTVERIFY_TRY(const auto count, reader.u16());
  CKPTVERIFY_TRY(const auto size, reader.u32());
  CKPTVERIFY_TRY(const auto offset, reader.u32());
  CKPTVERIFY_TRY(const auto comment_size, reader.u16());
  if (disk != 0 || directory_disk != 0 || disk_count != count) {
    return notes.fault(end + 4, CauseKind::kLayout, "zip archive is a part of several");
  }
  if (comment_size > reader.remaining()) {
    return notes.fault(end + 20, CauseKind::kTrunc,
                       "zip comment is cut" + numbers(reader.remaining(), comment_size));
  }
  notes.claim(end, kEndSize, Owner::kFraming, "zip end record");
  notes.claim(end + kEndSize, comment_size, Owner::kUnverifiable, "zip comment");
  if (const auto trailing = reader.remaining() - comment_size; trailing != 0) {
    notes.disagree(CauseKind::kLayout, end + kEndSize + comment_size,
                   "bytes after the end of the zip archive" + numbers(trailing, 0));
  }
  return Directory{.offset = offset, .size = size, .count = count};
}

/// The zip64 end record at `at`, which ends where the locator begins, and what it and the end
/// record say together.
Result<Directory> read_end64(Notes& notes, std::uint64_t at, std::uint64_t locator_offset,
                             std::uint64_t end, const Directory& classic) {
  Directory directory;
  if (locator_offset < kEnd64Size || at > locator_offset - kEnd64Size) {
    return notes.fault(locator_offset + 8, CauseKind::kLayout,
                       "zip64 end record lies outside of the archive; found offset " +
                           std::to_string(at) + ", expected one before the locator");
  }
  ByteReader record = notes.reader_at(notes.place().bytes.subspan(at, locator_offset - at), at);
  CKPTVERIFY_TRY(const auto record_signature, record.u32());
  CKPTVERIFY_TRY(const auto record_size, record.u64());
  CKPTVERIFY_TRY_VOID(record.seek(16));
  CKPTVERIFY_TRY(const auto record_disk, record.u32());
  CKPTVERIFY_TRY(const auto directory_disk, record.u32());
  CKPTVERIFY_TRY(const auto disk_count, record.u64());
  CKPTVERIFY_TRY(directory.count, record.u64());
  CKPTVERIFY_TRY(directory.size, record.u64());
  CKPTVERIFY_TRY(directory.offset, record.u64());
  if (record_signature != kEnd64Signature || record_size != locator_offset - at - 12) {
    return notes.fault(
        at, CauseKind::kLayout,
        "zip64 end record is damaged" + numbers(record_size, locator_offset - at - 12));
  }
  if (record_disk != 0 || directory_disk != 0 || disk_count != directory.count) {
    return notes.fault(at + 16, CauseKind::kLayout, "zip archive is a part of several");
  }
  const auto same = [&](std::uint64_t narrow, std::uint64_t wide, std::uint64_t marker,
                        std::uint64_t offset, std::string_view what) {
    if (narrow != marker) notes.compare(end + offset, what, narrow, wide);
  };
  same(classic.count, directory.count, 0xffff, 10, "entry count differs from the zip64 record's");
  same(classic.size, directory.size, 0xffffffff, 12,
       "directory size differs from the zip64 record's");
  same(classic.offset, directory.offset, 0xffffffff, 16,
       "directory offset differs from the zip64 record's");
  notes.claim(at, 12, Owner::kFraming, "zip64 end record");
  notes.claim(at + 12, 4, Owner::kUnverifiable, "zip64 versions");
  notes.claim(at + 16, kEnd64Size - 16, Owner::kFraming, "zip64 end record");
  notes.claim(at + kEnd64Size, record_size + 12 - kEnd64Size, Owner::kUnverifiable,
              "zip64 extension");
  notes.claim(locator_offset, kLocator64Size, Owner::kFraming, "zip64 locator");
  return directory;
}

/// Where the locator before the end record points, if there is one.
Result<std::optional<std::uint64_t>> read_locator(const Notes& notes, std::uint64_t end) {
  if (end < kLocator64Size) return std::optional<std::uint64_t>();
  const std::uint64_t offset = end - kLocator64Size;
  ByteReader locator = notes.reader_at(notes.place().bytes.subspan(offset, kLocator64Size), offset);
  CKPTVERIFY_TRY(const auto signature, locator.u32());
  if (signature != kLocator64Signature) return std::optional<std::uint64_t>();
  CKPTVERIFY_TRY(const auto disk, locator.u32());
  CKPTVERIFY_TRY(const auto at, locator.u64());
  CKPTVERIFY_TRY(const auto disks, locator.u32());
  if (disk != 0 || disks != 1) {
    return notes.fault(offset + 4, CauseKind::kLayout, "zip archive is a part of several");
  }
  return std::optional(at);
}

/// The directory ends where the end records begin.
Result<void> check_directory_end(Notes& notes, const Directory& directory, std::uint64_t end,
                                 std::uint64_t directory_end) {
  CKPTVERIFY_TRY(const auto claimed_end, checked_add(directory.offset, directory.size));
  if (claimed_end > directory_end) {
    return notes.fault(
        end, CauseKind::kLayout,
        "zip directory runs into the end record" + numbers(claimed_end, directory_end));
  }
  if (claimed_end == directory_end) return {};
  const std::uint64_t actual = directory_end - directory.size;
  ByteReader reader = notes.reader_at(notes.place().bytes.subspan(actual), actual);
  if (const auto signature = reader.u32(); signature && *signature == kCentralSignature) {
    return notes.fault(0, CauseKind::kLayout,
                       "bytes before the zip archive" + numbers(actual - directory.offset, 0));
  }
  notes.disagree(CauseKind::kLayout, claimed_end,
                 "bytes between the zip directory and the end record" +
                     numbers(directory_end - claimed_end, 0));
  return {};
}

Result<void> read_central_extra(Notes& notes, CentralHeader& header, Bytes extra,
                                std::uint64_t at) {
  CKPTVERIFY_TRY(const auto fields, split_extra(notes, extra, at));
  for (const ExtraField& field : fields) {
    if (field.id != kExtraZip64) {
      claim_other_extra(notes, field);
      continue;
    }
    // Only what overflows 32 bits is there, in this order (APPNOTE 4.5.3).
    ByteReader reader = notes.reader_at(field.data, field.offset + 4);
    for (std::uint64_t* narrow : {&header.size, &header.stored_size, &header.local_offset}) {
      if (*narrow != 0xffffffff) continue;
      CKPTVERIFY_TRY(*narrow, reader.u64());
    }
    if (!reader.at_end()) {
      return notes.fault(reader.offset() - notes.place().base, CauseKind::kBitrot,
                         "zip64 extra field is too long" + numbers(reader.remaining(), 0));
    }
    header.zip64 = true;
    notes.claim(field.offset, 4 + field.data.size(), Owner::kFraming, "zip64 extra field");
  }
  return {};
}

Result<CentralHeader> read_central(Notes& notes, ByteReader& reader) {
  const std::uint64_t at = reader.offset() - notes.place().base;
  CentralHeader header;
  CKPTVERIFY_TRY(const auto signature, reader.u32());
  if (signature != kCentralSignature) {
    return notes.fault(
        at, CauseKind::kBitrot,
        "zip directory entry has no signature" + signatures(signature, kCentralSignature));
  }
  CKPTVERIFY_TRY([[maybe_unused]] const auto made_by, reader.u16());
  CKPTVERIFY_TRY(header.version_needed, reader.u16());
  CKPTVERIFY_TRY(header.flags, reader.u16());
  CKPTVERIFY_TRY(header.method, reader.u16());
  CKPTVERIFY_TRY(header.time, reader.u16());
  CKPTVERIFY_TRY(header.date, reader.u16());
  CKPTVERIFY_TRY(header.crc, reader.u32());
  CKPTVERIFY_TRY(header.stored_size, reader.u32());
  CKPTVERIFY_TRY(header.size, reader.u32());
  CKPTVERIFY_TRY(const auto name_size, reader.u16());
  CKPTVERIFY_TRY(const auto extra_size, reader.u16());
  CKPTVERIFY_TRY(const auto comment_size, reader.u16());
  CKPTVERIFY_TRY(const auto disk, reader.u16());
  CKPTVERIFY_TRY([[maybe_unused]] const auto attributes, reader.take(6));
  CKPTVERIFY_TRY(header.local_offset, reader.u32());
  CKPTVERIFY_TRY(const auto name, reader.take(name_size));
  CKPTVERIFY_TRY(const auto extra, reader.take(extra_size));
  CKPTVERIFY_TRY([[maybe_unused]] const auto comment, reader.take(comment_size));
  header.name = as_text(name);
  if (disk != 0) return notes.fault(at + 34, CauseKind::kLayout, "zip entry is on another disk");
  notes.claim(at, 4, Owner::kFraming, "zip directory");
  notes.claim(at + 4, 2, Owner::kUnverifiable, "zip made-by version");
  notes.claim(at + 6, 30, Owner::kFraming, "zip directory");
  notes.claim(at + 36, 6, Owner::kUnverifiable, "zip attributes");
  notes.claim(at + 42, 4U + name_size, Owner::kFraming, "zip directory");
  notes.claim(at + kCentralSize + name_size + extra_size, comment_size, Owner::kUnverifiable,
              "zip entry comment");
  CKPTVERIFY_TRY_VOID(read_central_extra(notes, header, extra, at + kCentralSize + name_size));
  return header;
}

Result<std::vector<CentralHeader>> read_headers(Notes& notes, const Directory& directory) {
  if (directory.count > directory.size / kCentralSize) {
    return notes.fault(directory.offset, CauseKind::kLayout,
                       "zip directory is too small for its entries; found " +
                           std::to_string(directory.size) + " bytes, expected at least " +
                           std::to_string(kCentralSize) + " for each of " +
                           std::to_string(directory.count));
  }
  CKPTVERIFY_TRY(const auto part, slice(notes.place().bytes, directory.offset, directory.size));
  ByteReader reader = notes.reader_at(part, directory.offset);
  std::vector<CentralHeader> headers;
  headers.reserve(directory.count);
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    CKPTVERIFY_TRY(auto header, read_central(notes, reader));
    headers.push_back(std::move(header));
  }
  if (!reader.at_end()) {
    return notes.fault(
        reader.offset() - notes.place().base, CauseKind::kLayout,
        "zip directory has bytes after its last entry" + numbers(reader.remaining(), 0));
  }
  return headers;
}

}  // namespace

std::string numbers(std::uint64_t found, std::uint64_t expected) {
  return "; found " + std::to_string(found) + ", expected " + std::to_string(expected);
}

std::string signatures(std::uint32_t found, std::uint32_t expected) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "; found 0x%08x, expected 0x%08x", found, expected);
  return text.data();
}

void Notes::claim(std::uint64_t offset, std::uint64_t size, Owner owner, std::string label) {
  framing.push_back({{place_.file, place_.base + offset, size}, owner, std::move(label)});
}

void Notes::disagree(CauseKind cause, std::uint64_t offset, const std::string& message) {
  const std::string absolute = std::to_string(place_.base + offset);
  findings.push_back({.check = "static.container",
                      .status = Status::kFail,
                      .cause = Cause{cause},
                      .message = "byte " + absolute + ": " + message,
                      .evidence = {{"offset", absolute}}});
}

void Notes::compare(std::uint64_t offset, std::string_view what, std::uint64_t found,
                    std::uint64_t expected) {
  if (found == expected) return;
  disagree(CauseKind::kBitrot, offset, std::string(what) + numbers(found, expected));
}

Error Notes::fault(std::uint64_t offset, CauseKind cause, std::string message) const {
  return {.message = std::move(message), .offset = place_.base + offset, .cause = Cause{cause}};
}

Result<std::vector<ExtraField>> split_extra(const Notes& notes, Bytes extra, std::uint64_t at) {
  std::vector<ExtraField> fields;
  ByteReader reader = notes.reader_at(extra, at);
  while (!reader.at_end()) {
    ExtraField field{.id = 0, .offset = at + reader.position(), .data = {}};
    const auto id = reader.u16();
    const auto size = reader.u16();
    const auto data = id && size ? reader.take(*size) : Result<Bytes>(Error{});
    if (!data) {
      return notes.fault(field.offset, CauseKind::kBitrot,
                         "zip extra field does not fit; found " +
                             std::to_string(reader.remaining()) +
                             " bytes left, expected at least its header and data");
    }
    field.id = *id;
    field.data = *data;
    for (const ExtraField& other : fields) {
      if (other.id == field.id) {
        return notes.fault(field.offset, CauseKind::kLayout,
                           "zip extra field appears twice; found id " + std::to_string(field.id));
      }
    }
    fields.push_back(field);
  }
  return fields;
}

void claim_other_extra(Notes& notes, const ExtraField& field) {
  if (std::find(std::begin(kExtraHarmless), std::end(kExtraHarmless), field.id) ==
      std::end(kExtraHarmless)) {
    notes.disagree(CauseKind::kLayout, field.offset,
                   "zip extra field of an unknown kind; found id " + std::to_string(field.id));
  }
  notes.claim(field.offset, 4, Owner::kFraming, "zip extra field");
  notes.claim(field.offset + 4, field.data.size(), Owner::kUnverifiable, "zip extra field");
}

Result<Directory> read_directory(Notes& notes) {
  CKPTVERIFY_TRY(const auto end, find_end(notes));
  CKPTVERIFY_TRY(auto directory, read_end(notes, end));
  CKPTVERIFY_TRY(const auto end64, read_locator(notes, end));
  if (end64) {
    CKPTVERIFY_TRY(directory, read_end64(notes, *end64, end - kLocator64Size, end, directory));
  }
  CKPTVERIFY_TRY_VOID(check_directory_end(notes, directory, end, end64.value_or(end)));
  CKPTVERIFY_TRY(directory.headers, read_headers(notes, directory));
  return directory;
}

}  // namespace ckptverify::zip
