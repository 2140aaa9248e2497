// A zip archive is read from its end:
//
//   [local header | name | extra | payload | descriptor]...   one an entry
//   [central header | name | extra | comment]...              the directory
//   [zip64 end record][zip64 locator]                         where 32 bits might not do
//   [end record | comment]                                    the last bytes of the file
//
// Source: APPNOTE.TXT 6.3; "FB" padding: caffe2/serialize/inline_container.cc.
#include "formats/container/zip.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "formats/encoding/deflate.h"

namespace ckptverify {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kCentralSignature = 0x02014b50;
constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30;
constexpr std::uint64_t kCentralSize = 46;
constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kEnd64Size = 56;
constexpr std::uint64_t kLocator64Size = 20;
// An end record is looked for this far before the end of the file: its comment can have 65535
// bytes, and PyTorch itself tolerates about 64 KiB of trailing bytes. Beyond, the archive is cut.
constexpr std::uint64_t kEndSearchBytes = 1 << 20;

constexpr std::uint16_t kFlagDescriptor = 0x0008;
constexpr std::uint16_t kFlagsKnown = 0x080e;  // descriptor, UTF-8, and deflate's effort
constexpr std::uint16_t kExtraZip64 = 0x0001;
constexpr std::uint16_t kExtraPadding = 0x4246;  // "FB"
// Extra fields of other zip writers, which say nothing about the payload: timestamps and owners.
constexpr std::uint16_t kExtraHarmless[] = {0x000a, 0x5455, 0x5855, 0x7855, 0x7875, 0xcafe};

Error malformed(std::uint64_t offset, CauseKind cause, std::string message) {
  return Error{.message = std::move(message), .offset = offset, .cause = Cause{cause}};
}

std::string numbers(std::uint64_t found, std::uint64_t expected) {
  return "; found " + std::to_string(found) + ", expected " + std::to_string(expected);
}

struct Directory {
  std::uint64_t offset = 0;  // in the archive, as all of the below
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

struct CentralHeader {
  std::uint16_t version_needed = 0, flags = 0, method = 0, time = 0, date = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored_size = 0, size = 0, local_offset = 0;
  std::string name;
  bool zip64 = false;
};

/// One reading of one archive; collects claims and findings as it goes.
class ZipReading {
 public:
  explicit ZipReading(const ArchivePlace& place) : place_(place) {}
  Result<ZipArchive> read();

 private:
  Result<std::uint64_t> find_end();
  Result<Directory> read_end(std::uint64_t end);
  Result<Directory> read_end64(std::uint64_t end, Directory classic);
  Result<std::vector<CentralHeader>> read_directory(const Directory& directory);
  Result<CentralHeader> read_central(ByteReader& reader);
  Result<void> read_central_extra(CentralHeader& header, Bytes extra, std::uint64_t at);
  Result<void> read_local(const CentralHeader& central, std::uint64_t directory_offset);
  Result<bool> read_local_extra(const CentralHeader& central, std::uint64_t at, Bytes extra);
  Result<std::uint64_t> read_descriptor(const CentralHeader& central, bool zip64, std::uint64_t at);
  Result<void> check_names() const;
  Result<void> check_overlaps();

  void claim(std::uint64_t offset, std::uint64_t size, Owner owner, std::string label) {
    archive_.framing.push_back(
        {{place_.file, place_.base + offset, size}, owner, std::move(label)});
  }
  void disagree(CauseKind cause, std::uint64_t offset, const std::string& message) {
    archive_.findings.push_back(
        {.check = "static.container",
         .status = Status::kFail,
         .cause = Cause{cause},
         .message = "byte " + std::to_string(place_.base + offset) + ": " + message,
         .evidence = {{"offset", std::to_string(place_.base + offset)}}});
  }
  void compare(std::uint64_t offset, std::string_view what, std::uint64_t found,
               std::uint64_t expected) {
    if (found == expected) return;
    disagree(CauseKind::kBitrot, offset, std::string(what) + numbers(found, expected));
  }
  Error fault(std::uint64_t offset, CauseKind cause, std::string message) const {
    return malformed(place_.base + offset, cause, std::move(message));
  }
  ByteReader reader_at(Bytes part, std::uint64_t offset) const {
    return ByteReader(part, place_.base + offset);
  }

  ArchivePlace place_;
  ZipArchive archive_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans_;  // begin and end of each entry
};

Result<std::uint64_t> ZipReading::find_end() {
  const Bytes bytes = place_.bytes;
  const std::uint64_t size = bytes.size();
  const std::uint64_t stop = size > kEndSearchBytes ? size - kEndSearchBytes : 0;
  for (std::uint64_t at = size; at-- > stop;) {
    if (size - at < kEndSize || bytes[at] != std::byte{'P'}) continue;
    ByteReader reader(bytes.subspan(at));
    CKPTVERIFY_TRY(const auto signature, reader.u32());
    if (signature == kEndSignature) return at;
  }
  return fault(size, CauseKind::kTrunc,
               "zip archive has no end of central directory; found " + std::to_string(size) +
                   " bytes without one, expected it as the last " + std::to_string(kEndSize));
}

Result<Directory> ZipReading::read_end(std::uint64_t end) {
  ByteReader reader = reader_at(place_.bytes.subspan(end), end);
  CKPTVERIFY_TRY_VOID(reader.seek(4));
  CKPTVERIFY_TRY(const auto disk, reader.u16());
  CKPTVERIFY_TRY(const auto directory_disk, reader.u16());
  CKPTVERIFY_TRY(const auto disk_count, reader.u16());
  CKPTVERIFY_TRY(const auto count, reader.u16());
  CKPTVERIFY_TRY(const auto size, reader.u32());
  CKPTVERIFY_TRY(const auto offset, reader.u32());
  CKPTVERIFY_TRY(const auto comment_size, reader.u16());
  if (disk != 0 || directory_disk != 0 || disk_count != count) {
    return fault(end + 4, CauseKind::kLayout, "zip archive is a part of several");
  }
  if (comment_size > reader.remaining()) {
    return fault(end + 20, CauseKind::kTrunc,
                 "zip comment is cut" + numbers(reader.remaining(), comment_size));
  }
  claim(end, kEndSize, Owner::kFraming, "zip end record");
  claim(end + kEndSize, comment_size, Owner::kUnverifiable, "zip comment");
  if (const auto trailing = reader.remaining() - comment_size; trailing != 0) {
    disagree(CauseKind::kLayout, end + kEndSize + comment_size,
             "bytes after the end of the zip archive" + numbers(trailing, 0));
  }
  return read_end64(end, {.offset = offset, .size = size, .count = count});
}

/// The zip64 records before the end record, where there are any, and what both say together.
Result<Directory> ZipReading::read_end64(std::uint64_t end, Directory classic) {
  Directory directory = classic;
  std::uint64_t directory_end = end;
  ByteReader locator = reader_at(
      end < kLocator64Size ? Bytes() : place_.bytes.subspan(end - kLocator64Size, kLocator64Size),
      end - kLocator64Size);
  if (const auto signature = locator.u32(); signature && *signature == kLocator64Signature) {
    const std::uint64_t locator_offset = end - kLocator64Size;
    CKPTVERIFY_TRY(const auto disk, locator.u32());
    CKPTVERIFY_TRY(const auto at, locator.u64());
    CKPTVERIFY_TRY(const auto disks, locator.u32());
    if (disk != 0 || disks != 1) {
      return fault(locator_offset + 4, CauseKind::kLayout, "zip archive is a part of several");
    }
    if (locator_offset < kEnd64Size || at > locator_offset - kEnd64Size) {
      return fault(locator_offset + 8, CauseKind::kLayout,
                   "zip64 end record lies outside of the archive; found offset " +
                       std::to_string(at) + ", expected one before the locator");
    }
    ByteReader record = reader_at(place_.bytes.subspan(at, locator_offset - at), at);
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
      return fault(at, CauseKind::kLayout,
                   "zip64 end record is damaged" + numbers(record_size, locator_offset - at - 12));
    }
    if (record_disk != 0 || directory_disk != 0 || disk_count != directory.count) {
      return fault(at + 16, CauseKind::kLayout, "zip archive is a part of several");
    }
    const auto same = [&](std::uint64_t narrow, std::uint64_t wide, std::uint64_t marker,
                          std::uint64_t offset, std::string_view what) {
      if (narrow != marker) compare(end + offset, what, narrow, wide);
    };
    same(classic.count, directory.count, 0xffff, 10, "entry count differs from the zip64 record's");
    same(classic.size, directory.size, 0xffffffff, 12,
         "directory size differs from the zip64 record's");
    same(classic.offset, directory.offset, 0xffffffff, 16,
         "directory offset differs from the zip64 record's");
    claim(at, 12, Owner::kFraming, "zip64 end record");
    claim(at + 12, 4, Owner::kUnverifiable, "zip64 versions");
    claim(at + 16, kEnd64Size - 16, Owner::kFraming, "zip64 end record");
    claim(at + kEnd64Size, record_size + 12 - kEnd64Size, Owner::kUnverifiable, "zip64 extension");
    claim(locator_offset, kLocator64Size, Owner::kFraming, "zip64 locator");
    directory_end = at;
  }
  CKPTVERIFY_TRY(const auto claimed_end, checked_add(directory.offset, directory.size));
  if (claimed_end > directory_end) {
    return fault(end, CauseKind::kLayout,
                 "zip directory runs into the end record" + numbers(claimed_end, directory_end));
  }
  if (claimed_end < directory_end) {
    disagree(CauseKind::kLayout, claimed_end,
             "bytes between the zip directory and the end record" +
                 numbers(directory_end - claimed_end, 0));
  }
  return directory;
}

Result<std::vector<CentralHeader>> ZipReading::read_directory(const Directory& directory) {
  if (directory.count > directory.size / kCentralSize) {
    return fault(directory.offset, CauseKind::kLayout,
                 "zip directory is too small for its entries; found " +
                     std::to_string(directory.size) + " bytes, expected at least " +
                     std::to_string(kCentralSize) + " for each of " +
                     std::to_string(directory.count));
  }
  CKPTVERIFY_TRY(const auto part, slice(place_.bytes, directory.offset, directory.size));
  ByteReader reader = reader_at(part, directory.offset);
  std::vector<CentralHeader> headers;
  headers.reserve(directory.count);
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    CKPTVERIFY_TRY(auto header, read_central(reader));
    headers.push_back(std::move(header));
  }
  if (!reader.at_end()) {
    return malformed(
        reader.offset(), CauseKind::kLayout,
        "zip directory has bytes after its last entry" + numbers(reader.remaining(), 0));
  }
  return headers;
}

Result<CentralHeader> ZipReading::read_central(ByteReader& reader) {
  const std::uint64_t at = reader.offset() - place_.base;
  CentralHeader header;
  CKPTVERIFY_TRY(const auto signature, reader.u32());
  if (signature != kCentralSignature) {
    return fault(at, CauseKind::kBitrot,
                 "zip directory entry has no signature" + numbers(signature, kCentralSignature));
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
  if (disk != 0) return fault(at + 34, CauseKind::kLayout, "zip entry is on another disk");
  if ((header.flags & ~kFlagsKnown) != 0) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "zip entry is encrypted or patched; found flags " +
                            std::to_string(header.flags) + ", expected bits 1, 2, 3 and 11 only",
                 .offset = place_.base + at + 8};
  }
  if (header.method != 0 && header.method != 8) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "zip entry is compressed; found method " +
                            std::to_string(header.method) + ", expected 0 or 8",
                 .offset = place_.base + at + 10};
  }
  claim(at, 4, Owner::kFraming, "zip directory");
  claim(at + 4, 2, Owner::kUnverifiable, "zip made-by version");
  claim(at + 6, 30, Owner::kFraming, "zip directory");
  claim(at + 36, 6, Owner::kUnverifiable, "zip attributes");
  claim(at + 42, 4U + name_size, Owner::kFraming, "zip directory");
  claim(at + kCentralSize + name_size + extra_size, comment_size, Owner::kUnverifiable,
        "zip entry comment");
  CKPTVERIFY_TRY_VOID(read_central_extra(header, extra, at + kCentralSize + name_size));
  return header;
}

struct ExtraField {
  std::uint16_t id = 0;
  std::uint64_t offset = 0;  // of its id, in the archive
  Bytes data;
};

Result<std::vector<ExtraField>> split_extra(Bytes extra, std::uint64_t at, std::uint64_t base) {
  std::vector<ExtraField> fields;
  ByteReader reader(extra, base + at);
  while (!reader.at_end()) {
    ExtraField field{.id = 0, .offset = at + reader.position(), .data = {}};
    const auto id = reader.u16();
    const auto size = reader.u16();
    const auto data = id && size ? reader.take(*size) : Result<Bytes>(Error{});
    if (!data) {
      return malformed(base + field.offset, CauseKind::kBitrot,
                       "zip extra field does not fit; found " + std::to_string(reader.remaining()) +
                           " bytes left, expected at least its header and data");
    }
    field.id = *id;
    field.data = *data;
    for (const ExtraField& other : fields) {
      if (other.id == field.id) {
        return malformed(base + field.offset, CauseKind::kLayout,
                         "zip extra field appears twice; found id " + std::to_string(field.id));
      }
    }
    fields.push_back(field);
  }
  return fields;
}

bool is_harmless(std::uint16_t id) {
  return std::find(std::begin(kExtraHarmless), std::end(kExtraHarmless), id) !=
         std::end(kExtraHarmless);
}

Result<void> ZipReading::read_central_extra(CentralHeader& header, Bytes extra, std::uint64_t at) {
  CKPTVERIFY_TRY(const auto fields, split_extra(extra, at, place_.base));
  for (const ExtraField& field : fields) {
    if (field.id != kExtraZip64) {
      if (!is_harmless(field.id)) {
        disagree(CauseKind::kLayout, field.offset,
                 "zip extra field of an unknown kind; found id " + std::to_string(field.id));
      }
      claim(field.offset, 4, Owner::kFraming, "zip extra field");
      claim(field.offset + 4, field.data.size(), Owner::kUnverifiable, "zip extra field");
      continue;
    }
    // Only what overflows 32 bits is there, in this order (APPNOTE 4.5.3).
    ByteReader reader = reader_at(field.data, field.offset + 4);
    for (std::uint64_t* narrow : {&header.size, &header.stored_size, &header.local_offset}) {
      if (*narrow != 0xffffffff) continue;
      CKPTVERIFY_TRY(*narrow, reader.u64());
    }
    if (!reader.at_end()) {
      return malformed(reader.offset(), CauseKind::kBitrot,
                       "zip64 extra field is too long" + numbers(reader.remaining(), 0));
    }
    header.zip64 = true;
    claim(field.offset, 4 + field.data.size(), Owner::kFraming, "zip64 extra field");
  }
  return {};
}

/// Whether the local header has a zip64 field, which decides the width of the descriptor.
Result<bool> ZipReading::read_local_extra(const CentralHeader& central, std::uint64_t at,
                                          Bytes extra) {
  bool zip64 = central.zip64;
  CKPTVERIFY_TRY(const auto fields, split_extra(extra, at, place_.base));
  for (const ExtraField& field : fields) {
    claim(field.offset, 4, Owner::kFraming, "zip extra field of " + central.name);
    const std::uint64_t data_offset = field.offset + 4;
    if (field.id == kExtraPadding) {
      const auto bad = std::find_if(field.data.begin(), field.data.end(),
                                    [](std::byte b) { return b != std::byte{'Z'}; });
      if (bad != field.data.end()) {
        disagree(CauseKind::kBitrot,
                 data_offset + static_cast<std::uint64_t>(bad - field.data.begin()),
                 "zip padding is not 'Z'" + numbers(std::to_integer<unsigned>(*bad), 'Z'));
      }
      claim(data_offset, field.data.size(), Owner::kPadding, "zip padding of " + central.name);
    } else if (field.id == kExtraZip64) {
      // Size, then stored size; a streaming writer does not know the second yet and leaves 0.
      zip64 = true;
      ByteReader reader = reader_at(field.data, data_offset);
      for (const std::uint64_t expected : {central.size, central.stored_size}) {
        if (reader.at_end()) break;
        CKPTVERIFY_TRY(const auto found, reader.u64());
        if (found != 0) {
          compare(data_offset, "zip64 size differs from the directory's", found, expected);
        }
      }
      claim(data_offset, field.data.size(), Owner::kFraming, "zip64 extra field");
    } else {
      if (!is_harmless(field.id)) {
        disagree(CauseKind::kLayout, field.offset,
                 "zip extra field of an unknown kind; found id " + std::to_string(field.id));
      }
      claim(data_offset, field.data.size(), Owner::kUnverifiable, "zip extra field");
    }
  }
  return zip64;
}

Result<void> ZipReading::read_local(const CentralHeader& central, std::uint64_t directory_offset) {
  const std::uint64_t at = central.local_offset;
  if (at > directory_offset || directory_offset - at < kLocalSize) {
    return fault(at, CauseKind::kLayout,
                 "zip entry " + central.name + " starts outside of the archive's body" +
                     numbers(at, directory_offset));
  }
  const Bytes body = place_.bytes.subspan(at, directory_offset - at);
  ByteReader reader = reader_at(body, at);
  CKPTVERIFY_TRY(const auto signature, reader.u32());
  if (signature != kLocalSignature) {
    return fault(
        at, CauseKind::kBitrot,
        "zip entry " + central.name + " has no local header" + numbers(signature, kLocalSignature));
  }
  CKPTVERIFY_TRY(const auto version_needed, reader.u16());
  CKPTVERIFY_TRY(const auto flags, reader.u16());
  CKPTVERIFY_TRY(const auto method, reader.u16());
  CKPTVERIFY_TRY(const auto time, reader.u16());
  CKPTVERIFY_TRY(const auto date, reader.u16());
  CKPTVERIFY_TRY(const auto crc, reader.u32());
  CKPTVERIFY_TRY(const auto stored_size, reader.u32());
  CKPTVERIFY_TRY(const auto size, reader.u32());
  CKPTVERIFY_TRY(const auto name_size, reader.u16());
  CKPTVERIFY_TRY(const auto extra_size, reader.u16());
  CKPTVERIFY_TRY(const auto name, reader.take(name_size));
  CKPTVERIFY_TRY(const auto extra, reader.take(extra_size));
  compare(at + 4, "zip version differs from the directory's", version_needed,
          central.version_needed);
  compare(at + 6, "zip flags differ from the directory's", flags, central.flags);
  compare(at + 8, "zip method differs from the directory's", method, central.method);
  compare(at + 10, "zip time differs from the directory's", time, central.time);
  compare(at + 12, "zip date differs from the directory's", date, central.date);
  if (as_text(name) != central.name) {
    return fault(at + kLocalSize, CauseKind::kBitrot,
                 "zip name differs from the directory's; found \"" + std::string(as_text(name)) +
                     "\", expected \"" + central.name + "\"");
  }
  // With a descriptor the writer did not know these yet, and leaves 0.
  const bool descriptor = (central.flags & kFlagDescriptor) != 0;
  const auto known = [&](std::uint64_t offset, std::string_view what, std::uint64_t found,
                         std::uint64_t expected) {
    if (!(descriptor && found == 0) && found != 0xffffffff) compare(offset, what, found, expected);
  };
  known(at + 14, "zip CRC differs from the directory's", crc, central.crc);
  known(at + 18, "zip stored size differs from the directory's", stored_size, central.stored_size);
  known(at + 22, "zip size differs from the directory's", size, central.size);
  claim(at, kLocalSize + name_size, Owner::kFraming, "zip header of " + central.name);
  CKPTVERIFY_TRY(const bool zip64, read_local_extra(central, at + kLocalSize + name_size, extra));

  const std::uint64_t payload = at + reader.position();
  if (central.stored_size > reader.remaining()) {
    return fault(payload, CauseKind::kTrunc,
                 "zip entry " + central.name + " runs into the directory" +
                     numbers(reader.remaining(), central.stored_size));
  }
  std::uint64_t end = payload + central.stored_size;
  if (descriptor) {
    CKPTVERIFY_TRY(const auto size_of_descriptor, read_descriptor(central, zip64, end));
    end += size_of_descriptor;
  }
  spans_.emplace_back(at, end);
  archive_.entries.push_back({.name = central.name,
                              .deflated = central.method == 8,
                              .crc = central.crc,
                              .header_offset = place_.base + at,
                              .payload_offset = place_.base + payload,
                              .stored_size = central.stored_size,
                              .size = central.size});
  return {};
}

Result<std::uint64_t> ZipReading::read_descriptor(const CentralHeader& central, bool zip64,
                                                  std::uint64_t at) {
  ByteReader reader = reader_at(place_.bytes.subspan(at), at);
  CKPTVERIFY_TRY(const auto signature, reader.u32());
  CKPTVERIFY_TRY(const auto crc, reader.u32());
  std::uint64_t stored_size = 0;
  std::uint64_t size = 0;
  if (zip64) {
    CKPTVERIFY_TRY(stored_size, reader.u64());
    CKPTVERIFY_TRY(size, reader.u64());
  } else {
    CKPTVERIFY_TRY(stored_size, reader.u32());
    CKPTVERIFY_TRY(size, reader.u32());
  }
  compare(at, "zip descriptor has no signature", signature, kDescriptorSignature);
  compare(at + 4, "zip CRC differs from the directory's", crc, central.crc);
  compare(at + 8, "zip stored size differs from the directory's", stored_size, central.stored_size);
  compare(at + (zip64 ? 16 : 12), "zip size differs from the directory's", size, central.size);
  claim(at, reader.position(), Owner::kFraming, "zip descriptor of " + central.name);
  return reader.position();
}

bool leaves_archive(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.front() == '\\') return true;
  if (name.find('\0') != std::string_view::npos) return true;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("/\\", begin), name.size());
    if (name.substr(begin, end - begin) == "..") return true;
    begin = end + 1;
  }
  return false;
}

std::string folded(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

Result<void> ZipReading::check_names() const {
  std::map<std::string, std::string_view> seen;
  for (const ZipEntry& entry : archive_.entries) {
    if (leaves_archive(entry.name)) {
      return malformed(
          entry.header_offset + kLocalSize, CauseKind::kLayout,
          "zip name is empty, absolute or leaves the archive; found \"" + entry.name + "\"");
    }
    const auto [other, added] = seen.emplace(folded(entry.name), entry.name);
    if (!added) {
      return malformed(entry.header_offset, CauseKind::kLayout,
                       other->second == entry.name
                           ? "two zip entries have one name; found \"" + entry.name + "\" twice"
                           : "two zip names differ by case alone; found \"" + entry.name +
                                 "\" and \"" + std::string(other->second) + "\"");
    }
  }
  return {};
}

/// Entries that overlap are an error; bytes before the first one are a finding, and others that
/// nobody owns show in the coverage.
Result<void> ZipReading::check_overlaps() {
  std::sort(spans_.begin(), spans_.end());
  for (std::size_t i = 1; i < spans_.size(); ++i) {
    if (spans_[i].first < spans_[i - 1].second) {
      return fault(spans_[i].first, CauseKind::kLayout,
                   "two zip entries overlap" + numbers(spans_[i].first, spans_[i - 1].second));
    }
  }
  if (!spans_.empty() && spans_.front().first != 0) {
    disagree(CauseKind::kLayout, 0,
             "bytes before the first zip entry" + numbers(spans_.front().first, 0));
  }
  return {};
}

Result<ZipArchive> ZipReading::read() {
  CKPTVERIFY_TRY(const auto end, find_end());
  CKPTVERIFY_TRY(const auto directory, read_end(end));
  CKPTVERIFY_TRY(const auto headers, read_directory(directory));
  for (const CentralHeader& header : headers) {
    if (header.method == 0 && header.stored_size != header.size) {
      return fault(header.local_offset, CauseKind::kBitrot,
                   "stored zip entry " + header.name + " has two sizes" +
                       numbers(header.stored_size, header.size));
    }
    CKPTVERIFY_TRY_VOID(read_local(header, directory.offset));
  }
  CKPTVERIFY_TRY_VOID(check_names());
  CKPTVERIFY_TRY_VOID(check_overlaps());
  return std::move(archive_);
}

}  // namespace

Result<ZipArchive> read_zip(const ArchivePlace& place) {
  return ZipReading(place).read();
}

std::string_view first_zip_name(Bytes bytes) {
  ByteReader reader(bytes);
  const auto signature = reader.u32();
  if (!signature || *signature != kLocalSignature || !reader.seek(26)) return {};
  const auto name_size = reader.u16();
  if (!name_size || !reader.seek(kLocalSize)) return {};
  const auto name = reader.take(*name_size);
  return name ? as_text(*name) : std::string_view();
}

Run zip_run(const ArchivePlace& place, const ZipEntry& entry) {
  return {.file = place.file,
          .offset = entry.payload_offset,
          .stored_size = entry.stored_size,
          .size = entry.size,
          .decode = entry.deflated ? &inflate : nullptr};
}

Result<std::vector<std::byte>> zip_payload(const ArchivePlace& place, const ZipEntry& entry,
                                           std::uint64_t size_max) {
  if (entry.size > size_max) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = entry.name + " is too large to be read whole; found " +
                            std::to_string(entry.size) + " bytes, expected at most " +
                            std::to_string(size_max),
                 .offset = entry.payload_offset};
  }
  CKPTVERIFY_TRY(const auto stored,
                 slice(place.bytes, entry.payload_offset - place.base, entry.stored_size));
  if (!entry.deflated) return std::vector<std::byte>(stored.begin(), stored.end());
  auto decoded = inflate(stored, entry.size);
  if (decoded) return decoded;
  Error error = std::move(decoded).error();
  error.offset = entry.payload_offset;
  return error;
}

}  // namespace ckptverify
