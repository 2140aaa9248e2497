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
#include <utility>

#include "formats/container/zip_parts.h"
#include "formats/encoding/deflate.h"

namespace ckptverify {
namespace {

using zip::CentralHeader;
using zip::ExtraField;
using zip::kLocalSize;
using zip::Notes;
using zip::numbers;

constexpr std::uint32_t kDescriptorSignature = 0x08074b50;

/// What a local header says, once more than the directory.
struct LocalHeader {
  std::uint16_t version_needed = 0, flags = 0, method = 0, time = 0, date = 0;
  std::uint32_t crc = 0, stored_size = 0, size = 0;
  std::string_view name;
  Bytes extra;
};

Result<LocalHeader> parse_local(ByteReader& reader) {
  LocalHeader local;
  CKPTVERIFY_TRY(local.version_needed, reader.u16());
  CKPTVERIFY_TRY(local.flags, reader.u16());
  CKPTVERIFY_TRY(local.method, reader.u16());
  CKPTVERIFY_TRY(local.time, reader.u16());
  CKPTVERIFY_TRY(local.date, reader.u16());
  CKPTVERIFY_TRY(local.crc, reader.u32());
  CKPTVERIFY_TRY(local.stored_size, reader.u32());
  CKPTVERIFY_TRY(local.size, reader.u32());
  CKPTVERIFY_TRY(const auto name_size, reader.u16());
  CKPTVERIFY_TRY(const auto extra_size, reader.u16());
  CKPTVERIFY_TRY(const auto name, reader.take(name_size));
  CKPTVERIFY_TRY(local.extra, reader.take(extra_size));
  local.name = as_text(name);
  return local;
}

void compare_local(Notes& notes, const LocalHeader& local, const CentralHeader& central) {
  const std::uint64_t at = central.local_offset;
  notes.compare(at + 4, "zip version differs from the directory's", local.version_needed,
                central.version_needed);
  notes.compare(at + 6, "zip flags differ from the directory's", local.flags, central.flags);
  notes.compare(at + 8, "zip method differs from the directory's", local.method, central.method);
  notes.compare(at + 10, "zip time differs from the directory's", local.time, central.time);
  notes.compare(at + 12, "zip date differs from the directory's", local.date, central.date);
  // With a descriptor the writer did not know these yet, and leaves 0.
  const bool descriptor = (central.flags & zip::kFlagDescriptor) != 0;
  const auto known = [&](std::uint64_t offset, std::string_view what, std::uint64_t found,
                         std::uint64_t expected) {
    if (!(descriptor && found == 0) && found != 0xffffffff) {
      notes.compare(offset, what, found, expected);
    }
  };
  known(at + 14, "zip CRC differs from the directory's", local.crc, central.crc);
  known(at + 18, "zip stored size differs from the directory's", local.stored_size,
        central.stored_size);
  known(at + 22, "zip size differs from the directory's", local.size, central.size);
}

/// Entries whose payload we can read. One that is said to be encrypted or compressed otherwise in
/// one place alone is damaged; in both places it is beyond us.
Result<void> check_readable(const Notes& notes, const LocalHeader& local,
                            const CentralHeader& central) {
  const bool flags_known = (central.flags & ~zip::kFlagsKnown) == 0;
  const bool method_known = central.method == 0 || central.method == 8;
  if (flags_known && method_known) return {};
  const std::uint64_t at = central.local_offset + (flags_known ? 8 : 6);
  const std::uint16_t found = flags_known ? local.method : local.flags;
  const std::uint16_t expected = flags_known ? central.method : central.flags;
  if (found != expected) {
    return notes.fault(at, CauseKind::kBitrot,
                       std::string(flags_known ? "zip method" : "zip flags") + " of " +
                           central.name + " differ from the directory's" +
                           numbers(found, expected));
  }
  return Error{
      .kind = ErrorKind::kUnsupported,
      .message = "zip entry " + central.name + " is compressed or encrypted; found method " +
                 std::to_string(central.method) + " and flags " + std::to_string(central.flags) +
                 ", expected method 0 or 8 and flag bits "
                 "1, 2, 3 and 11 only",
      .offset = notes.place().base + at};
}

/// Whether the local header has a zip64 field, which decides the width of the descriptor.
Result<bool> read_local_extra(Notes& notes, const CentralHeader& central, std::uint64_t at,
                              Bytes extra) {
  bool zip64 = central.zip64;
  CKPTVERIFY_TRY(const auto fields, zip::split_extra(notes, extra, at));
  for (const ExtraField& field : fields) {
    const std::uint64_t data_offset = field.offset + 4;
    if (field.id == zip::kExtraPadding) {
      const auto bad = std::find_if(field.data.begin(), field.data.end(),
                                    [](std::byte b) { return b != std::byte{'Z'}; });
      if (bad != field.data.end()) {
        notes.disagree(CauseKind::kBitrot,
                       data_offset + static_cast<std::uint64_t>(bad - field.data.begin()),
                       "zip padding is not 'Z'" + numbers(std::to_integer<unsigned>(*bad), 'Z'));
      }
      notes.claim(data_offset, field.data.size(), Owner::kPadding,
                  "zip padding of " + central.name);
    } else if (field.id == zip::kExtraZip64) {
      // Size, then stored size; a streaming writer does not know the second yet and leaves 0.
      zip64 = true;
      ByteReader reader = notes.reader_at(field.data, data_offset);
      for (const std::uint64_t expected : {central.size, central.stored_size}) {
        if (reader.at_end()) break;
        CKPTVERIFY_TRY(const auto found, reader.u64());
        if (found != 0) {
          notes.compare(data_offset, "zip64 size differs from the directory's", found, expected);
        }
      }
      notes.claim(data_offset, field.data.size(), Owner::kFraming, "zip64 extra field");
    } else {
      claim_other_extra(notes, field);
      continue;
    }
    notes.claim(field.offset, 4, Owner::kFraming, "zip extra field of " + central.name);
  }
  return zip64;
}

Result<std::uint64_t> read_descriptor(Notes& notes, const CentralHeader& central, bool zip64,
                                      std::uint64_t at) {
  ByteReader reader = notes.reader_at(notes.place().bytes.subspan(at), at);
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
  if (signature != kDescriptorSignature)
    notes.disagree(
        CauseKind::kBitrot, at,
        "zip descriptor has no signature" + zip::signatures(signature, kDescriptorSignature));
  notes.compare(at + 4, "zip CRC differs from the directory's", crc, central.crc);
  notes.compare(at + 8, "zip stored size differs from the directory's", stored_size,
                central.stored_size);
  notes.compare(at + (zip64 ? 16 : 12), "zip size differs from the directory's", size,
                central.size);
  notes.claim(at, reader.position(), Owner::kFraming, "zip descriptor of " + central.name);
  return reader.position();
}

/// An entry and where it ends, its descriptor included.
struct LocatedEntry {
  ZipEntry entry;
  std::uint64_t begin = 0;  // in the archive
  std::uint64_t end = 0;
};

Result<LocatedEntry> read_local(Notes& notes, const CentralHeader& central,
                                std::uint64_t directory_offset) {
  const std::uint64_t at = central.local_offset;
  if (at > directory_offset || directory_offset - at < kLocalSize) {
    return notes.fault(at, CauseKind::kLayout,
                       "zip entry " + central.name + " starts outside of the archive's body" +
                           numbers(at, directory_offset));
  }
  ByteReader reader = notes.reader_at(notes.place().bytes.subspan(at, directory_offset - at), at);
  CKPTVERIFY_TRY(const auto signature, reader.u32());
  if (signature != zip::kLocalSignature) {
    return notes.fault(at, CauseKind::kBitrot,
                       "zip entry " + central.name + " has no local header" +
                           zip::signatures(signature, zip::kLocalSignature));
  }
  CKPTVERIFY_TRY(const auto local, parse_local(reader));
  CKPTVERIFY_TRY_VOID(check_readable(notes, local, central));
  compare_local(notes, local, central);
  if (local.name != central.name) {
    return notes.fault(at + kLocalSize, CauseKind::kBitrot,
                       "zip name differs from the directory's; found \"" + std::string(local.name) +
                           "\", expected \"" + central.name + "\"");
  }
  const std::uint64_t extra_offset = at + kLocalSize + local.name.size();
  notes.claim(at, extra_offset - at, Owner::kFraming, "zip header of " + central.name);
  CKPTVERIFY_TRY(const bool zip64, read_local_extra(notes, central, extra_offset, local.extra));
  const std::uint64_t payload = at + reader.position();
  if (central.stored_size > reader.remaining()) {
    return notes.fault(payload, CauseKind::kTrunc,
                       "zip entry " + central.name + " runs into the directory" +
                           numbers(reader.remaining(), central.stored_size));
  }
  std::uint64_t end = payload + central.stored_size;
  if ((central.flags & zip::kFlagDescriptor) != 0) {
    CKPTVERIFY_TRY(const auto size, read_descriptor(notes, central, zip64, end));
    end += size;
  }
  const std::uint64_t base = notes.place().base;
  return LocatedEntry{.entry = {.name = central.name,
                                .deflated = central.method == 8,
                                .crc = central.crc,
                                .header_offset = base + at,
                                .payload_offset = base + payload,
                                .stored_size = central.stored_size,
                                .size = central.size},
                      .begin = at,
                      .end = end};
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

Result<void> check_names(const Notes& notes, const std::vector<ZipEntry>& entries) {
  std::map<std::string, std::string_view> seen;
  for (const ZipEntry& entry : entries) {
    if (leaves_archive(entry.name)) {
      return notes.fault(
          entry.header_offset - notes.place().base + kLocalSize, CauseKind::kLayout,
          "zip name is empty, absolute or leaves the archive; found \"" + entry.name + "\"");
    }
    const auto [other, added] = seen.emplace(folded(entry.name), entry.name);
    if (!added) {
      return notes.fault(entry.header_offset - notes.place().base, CauseKind::kLayout,
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
Result<void> check_overlaps(Notes& notes,
                            std::vector<std::pair<std::uint64_t, std::uint64_t>> spans) {
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].first < spans[i - 1].second) {
      return notes.fault(spans[i].first, CauseKind::kLayout,
                         "two zip entries overlap" + numbers(spans[i].first, spans[i - 1].second));
    }
  }
  if (!spans.empty() && spans.front().first != 0) {
    notes.disagree(CauseKind::kLayout, 0,
                   "bytes before the first zip entry" + numbers(spans.front().first, 0));
  }
  return {};
}

}  // namespace

Result<ZipArchive> read_zip(const ArchivePlace& place) {
  Notes notes(place);
  CKPTVERIFY_TRY(const auto directory, zip::read_directory(notes));
  ZipArchive archive;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const CentralHeader& header : directory.headers) {
    if (header.method == 0 && header.stored_size != header.size) {
      return notes.fault(header.local_offset, CauseKind::kBitrot,
                         "stored zip entry " + header.name + " has two sizes" +
                             numbers(header.stored_size, header.size));
    }
    CKPTVERIFY_TRY(auto located, read_local(notes, header, directory.offset));
    spans.emplace_back(located.begin, located.end);
    archive.entries.push_back(std::move(located.entry));
  }
  CKPTVERIFY_TRY_VOID(check_names(notes, archive.entries));
  CKPTVERIFY_TRY_VOID(check_overlaps(notes, std::move(spans)));
  archive.framing = std::move(notes.framing);
  archive.findings = std::move(notes.findings);
  return archive;
}

std::string_view first_zip_name(Bytes bytes) {
  ByteReader reader(bytes);
  const auto signature = reader.u32();
  if (!signature || *signature != zip::kLocalSignature || !reader.seek(26)) return {};
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
