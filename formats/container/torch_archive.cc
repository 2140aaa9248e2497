// Source: torch/serialization.py (_save, _load), caffe2/serialize/inline_container.cc.
#include "formats/container/torch_archive.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "formats/encoding/deflate.h"

namespace ckptverify {
namespace {

// A pickle this large would make more objects than the pickle machine allows.
constexpr std::uint64_t kPickleBytesMax = 1ULL << 30;
// "version", "byteorder" and their like are a number or a word.
constexpr std::uint64_t kSmallRecordMax = 256;
// kMaxSupportedFileFormatVersion of caffe2/serialize/versions.h.
constexpr unsigned kVersionMax = 10;
constexpr std::size_t kSerializationIdSize = 40;
// What torch.package writes beside a program's modules and their pickles.
constexpr const char* kPackageMark = ".data/extern_modules";

Finding strange(const TorchArchive& archive, Status status, CauseKind cause, std::uint64_t offset,
                const std::string& message) {
  Finding finding{.check = "static.container",
                  .status = status,
                  .subject = archive.name,
                  .message = "byte " + std::to_string(offset) + ": " + message,
                  .evidence = {{"offset", std::to_string(offset)}}};
  if (status == Status::kFail) finding.cause = Cause{cause};
  return finding;
}

bool is_decimal(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The text of a small record; nothing where there is none.
Result<std::optional<std::string>> small_record(const TorchArchive& archive,
                                                std::string_view name) {
  const ZipEntry* entry = find_record(archive, name);
  if (entry == nullptr) return std::optional<std::string>();
  CKPTVERIFY_TRY(const auto bytes, zip_payload(archive.place, *entry, kSmallRecordMax));
  return std::optional(std::string(as_text(bytes)));
}

Result<void> check_prefix(TorchArchive& archive) {
  if (archive.zip.entries.empty()) {
    return Error{.message = "the archive has no records; found 0, expected at least data.pkl",
                 .offset = archive.place.base,
                 .cause = Cause{CauseKind::kLayout}};
  }
  const std::string& first = archive.zip.entries[0].name;
  const auto slash = first.find('/');
  if (slash == std::string::npos) {
    return Error{.message = "the archive has no top folder; found \"" + first +
                            "\", expected \"<folder>/" + first + "\"",
                 .offset = archive.zip.entries[0].header_offset,
                 .cause = Cause{CauseKind::kLayout}};
  }
  archive.prefix = first.substr(0, slash + 1);
  for (const ZipEntry& entry : archive.zip.entries) {
    if (entry.name.starts_with(archive.prefix)) continue;
    archive.findings.push_back(
        strange(archive, Status::kFail, CauseKind::kLayout, entry.header_offset,
                "a record lies outside of the top folder; found \"" + entry.name +
                    "\", expected \"" + archive.prefix + "...\""));
  }
  return {};
}

void check_version(TorchArchive& archive, const std::optional<std::string>& text) {
  if (!text) {
    archive.findings.push_back(strange(archive, Status::kFail, CauseKind::kLayout,
                                       archive.place.base,
                                       "the archive has no version record, which is written last"));
    return;
  }
  const std::string_view digits = std::string_view(*text).substr(0, text->find('\n'));
  unsigned version = 0;
  for (const char digit : digits) version = version * 10 + static_cast<unsigned>(digit - '0');
  if (!is_decimal(digits) || text->size() > digits.size() + 1) {
    archive.findings.push_back(strange(archive, Status::kFail, CauseKind::kBitrot,
                                       archive.place.base, "the version record is no number"));
  } else if (version < 1 || version > kVersionMax) {
    archive.uninterpreted.push_back(archive.name + ": version; found " + std::string(digits) +
                                    ", expected 1 to " + std::to_string(kVersionMax));
  }
}

Result<void> read_small_records(TorchArchive& archive) {
  CKPTVERIFY_TRY(auto version, small_record(archive, ".data/version"));
  if (!version) {
    CKPTVERIFY_TRY(version, small_record(archive, "version"));
  }
  check_version(archive, version);
  const auto broken = [&](std::string_view name) {
    archive.findings.push_back(strange(archive, Status::kFail, CauseKind::kBitrot,
                                       find_record(archive, name)->payload_offset,
                                       "the record " + std::string(name) + " is damaged"));
  };
  CKPTVERIFY_TRY(const auto byte_order, small_record(archive, "byteorder"));
  if (byte_order == "big") archive.byte_order = ByteOrder::kBig;
  if (byte_order && *byte_order != "big" && *byte_order != "little") broken("byteorder");
  for (const std::string_view name : {".format_version", ".storage_alignment"}) {
    CKPTVERIFY_TRY(const auto text, small_record(archive, name));
    if (text && !is_decimal(*text)) broken(name);
  }
  CKPTVERIFY_TRY(const auto id, small_record(archive, ".data/serialization_id"));
  if (id && (id->size() != kSerializationIdSize ||
             id->find_first_not_of("0123456789") != std::string::npos)) {
    broken(".data/serialization_id");
  }
  return {};
}

/// data.pkl below the prefix, or the only record whose name ends so: some forks have it deeper.
const ZipEntry* pickle_record(const TorchArchive& archive) {
  if (const ZipEntry* usual = find_record(archive, "data.pkl")) return usual;
  const ZipEntry* found = nullptr;
  for (const ZipEntry& entry : archive.zip.entries) {
    if (!entry.name.ends_with("/data.pkl")) continue;
    if (found != nullptr) return nullptr;
    found = &entry;
  }
  return found;
}

/// Records that have nothing to do with the state: the program of a TorchScript file, its
/// constants and debugging data, and what the writer says about the archive itself.
bool is_accessory(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "version",           "byteorder",
      ".format_version",   ".storage_alignment",
      ".data/version",     ".data/serialization_id",
      "constants.pkl",     "bytecode.pkl",
      "traced_inputs.pkl", "mobile_debug_handles.pkl"};
  static constexpr std::array<std::string_view, 6> kFolders = {
      "code/", "constants/", "extra/", "traced_inputs/", "bytecode/", ".data/ts_code/"};
  return name.ends_with('/') || name.ends_with(".debug_pkl") ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kFolders.begin(), kFolders.end(),
                     [&](std::string_view folder) { return name.starts_with(folder); });
}

std::string_view short_name(const TorchArchive& archive, const ZipEntry& entry) {
  std::string_view name = entry.name;
  if (name.starts_with(archive.prefix)) name.remove_prefix(archive.prefix.size());
  return name;
}

/// Whether a payload is a hole: what skip_data() leaves where a storage's bytes were never written.
bool is_all_zero(const TorchArchive& archive, const ZipEntry& entry) {
  const auto stored =
      slice(archive.place.bytes, entry.payload_offset - archive.place.base, entry.stored_size);
  return stored &&
         std::all_of(stored->begin(), stored->end(), [](std::byte b) { return b == std::byte{0}; });
}

struct Unprotected {
  std::size_t count = 0;
  std::vector<Evidence> names;
};

void claim_record(TorchArchive& archive, const ZipEntry* pickle, const ZipEntry& entry,
                  Checkpoint& checkpoint, Unprotected& unprotected) {
  const std::string_view name = short_name(archive, entry);
  const bool protected_by_crc = entry.crc != 0 || entry.stored_size == 0;
  Owner owner = protected_by_crc ? Owner::kMetadata : Owner::kUnverifiable;
  if (archive.storages.contains(entry.name)) {
    owner = Owner::kTensor;
    if (!protected_by_crc && pickle->crc != 0 && is_all_zero(archive, entry)) {
      archive.findings.push_back(strange(archive, Status::kFail, CauseKind::kTrunc,
                                         entry.payload_offset,
                                         entry.name + " was never written: a hole of " +
                                             std::to_string(entry.stored_size) + " zero bytes"));
    }
  } else if (name.starts_with("data/") && &entry != pickle) {
    archive.findings.push_back(strange(archive, Status::kFail, CauseKind::kLayout,
                                       entry.payload_offset,
                                       "no tensor refers to the storage " + entry.name));
  } else if (&entry != pickle && !is_accessory(name)) {
    archive.findings.push_back(
        strange(archive, Status::kWarn, CauseKind::kLayout, entry.payload_offset,
                "a record that PyTorch does not write; found " + entry.name));
  }
  checkpoint.coverage.own(
      {{archive.place.file, entry.payload_offset, entry.stored_size}, owner, std::string(name)});
  if (!protected_by_crc) {
    ++unprotected.count;
    unprotected.names.push_back({"record", std::string(name)});
    return;
  }
  if (entry.crc == 0) return;
  Run stored{.file = archive.place.file,
             .offset = entry.payload_offset,
             .stored_size = entry.stored_size,
             .size = entry.stored_size};
  checkpoint.checksums.push_back({.subject = std::string(name) + " in " + archive.name,
                                  .run = std::move(stored),
                                  .algorithm = "crc32",
                                  .expected = crc32_text(entry.crc),
                                  .compute = entry.deflated ? &crc32_of_deflated : &crc32_of_stored,
                                  .piecewise = entry.deflated ? nullptr : &kCrc32Pieces});
}

void claim_archive(TorchArchive& archive, Checkpoint& checkpoint) {
  for (const OwnedRange& range : archive.zip.framing) checkpoint.coverage.own(range);
  Unprotected unprotected;
  const ZipEntry* pickle = pickle_record(archive);
  for (const ZipEntry& entry : archive.zip.entries) {
    claim_record(archive, pickle, entry, checkpoint, unprotected);
  }
  if (unprotected.count != 0) {
    archive.findings.push_back({.check = "static.checksums",
                                .status = Status::kWarn,
                                .subject = archive.name,
                                .message = "the writer left out the CRC of " +
                                           std::to_string(unprotected.count) +
                                           " records: their bytes cannot be verified",
                                .evidence = std::move(unprotected.names)});
  }
}

/// The objects' pickle: where it is, or decoded.
struct PickleBytes {
  Bytes view;
  std::vector<std::byte> owned;
};

Result<PickleBytes> pickle_bytes(const TorchArchive& archive, const ZipEntry& entry) {
  PickleBytes bytes;
  if (entry.deflated) {
    CKPTVERIFY_TRY(bytes.owned, zip_payload(archive.place, entry, kPickleBytesMax));
  } else {
    CKPTVERIFY_TRY(bytes.view, slice(archive.place.bytes, entry.payload_offset - archive.place.base,
                                     entry.stored_size));
  }
  return bytes;
}

/// What is beyond us in an archive that contradicts itself is damage first of all.
Error weightier(const TorchArchive& archive, Error error) {
  if (error.kind != ErrorKind::kUnsupported || archive.zip.findings.empty()) return error;
  const Finding& first = archive.zip.findings.front();
  return {.message = first.message, .cause = first.cause};
}

/// Whether the record is not what its checksum is of.
bool is_damaged(const TorchArchive& archive, const ZipEntry& entry) {
  if (entry.crc == 0) return false;
  const auto payload = zip_payload(archive.place, entry, kPickleBytesMax);
  return !payload || crc32(*payload) != entry.crc;
}

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

TorchArchiveKind torch_archive_kind(Bytes bytes) {
  const std::string_view first = first_zip_name(bytes);
  const auto slash = first.find('/');
  if (slash == std::string_view::npos) return TorchArchiveKind::kNone;
  const std::string prefix(first.substr(0, slash + 1));
  if (const auto zip = read_zip({.bytes = bytes})) {
    const auto has = [&](const std::string& name) {
      return std::any_of(zip->entries.begin(), zip->entries.end(),
                         [&](const ZipEntry& entry) { return entry.name == prefix + name; });
    };
    if (has("constants.pkl")) return TorchArchiveKind::kLibTorch;
    if (has("data.pkl") || has(kPackageMark)) return TorchArchiveKind::kTorchSave;
    return TorchArchiveKind::kNone;
  }
  // Cut or damaged: only the order in which the two writers begin tells them apart.
  const std::string_view name = first.substr(slash + 1);
  if (name == "data.pkl" || name == "data/data.pkl") return TorchArchiveKind::kTorchSave;
  if (name.starts_with("data/") || name.starts_with("extra/") || name.starts_with("constants")) {
    return TorchArchiveKind::kLibTorch;
  }
  return TorchArchiveKind::kNone;
}

Result<TorchArchive> open_torch_archive(const ArchivePlace& place, std::string name) {
  TorchArchive archive;
  archive.place = place;
  archive.name = std::move(name);
  CKPTVERIFY_TRY(archive.zip, read_zip(place));
  CKPTVERIFY_TRY_VOID(check_prefix(archive));
  if (auto read = read_small_records(archive); !read) {
    return weightier(archive, std::move(read).error());
  }
  return archive;
}

const ZipEntry* find_record(const TorchArchive& archive, std::string_view name) {
  const std::string full = archive.prefix + std::string(name);
  const auto& entries = archive.zip.entries;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const ZipEntry& entry) { return entry.name == full; });
  return found == entries.end() ? nullptr : &*found;
}

Result<PickleTree> read_archive_tree(TorchArchive& archive) {
  if (find_record(archive, kPackageMark) != nullptr) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a torch.package, whose pickles belong to the program beside them",
                 .offset = archive.place.base};
  }
  const ZipEntry* entry = pickle_record(archive);
  if (entry == nullptr) {
    return Error{.message = "the archive has no record data.pkl",
                 .offset = archive.place.base,
                 .cause = Cause{CauseKind::kLayout}};
  }
  auto decoded_bytes = pickle_bytes(archive, *entry);
  if (!decoded_bytes) return weightier(archive, std::move(decoded_bytes).error());
  PickleBytes decoded = *std::move(decoded_bytes);
  const std::uint64_t size = entry->size;
  auto tree = entry->deflated ? read_pickle(std::move(decoded.owned), entry->payload_offset)
                              : read_pickle(decoded.view, entry->payload_offset);
  if (!tree) {
    // The checksum tells damage from a writer's mistake.
    Error error = std::move(tree).error();
    if (is_damaged(archive, *entry)) error.cause = Cause{CauseKind::kBitrot};
    error.message = entry->name + ": " + error.message;
    return error;
  }
  if (const auto end = entry->payload_offset + size; tree->end() != end) {
    archive.findings.push_back(strange(archive, Status::kFail, CauseKind::kLayout, tree->end(),
                                       entry->name + " has bytes after its pickle; found " +
                                           std::to_string(end - tree->end()) + ", expected 0"));
  }
  return tree;
}

TorchContext archive_context(TorchArchive& archive) {
  std::map<std::string_view, const ZipEntry*> records;
  for (const ZipEntry& entry : archive.zip.entries) records.emplace(entry.name, &entry);
  const auto find = [&archive,
                     records = std::move(records)](const StorageReference& storage) -> Result<Run> {
    const std::string name = archive.prefix + "data/" + storage.key;
    const auto fault = [&](CauseKind cause, std::uint64_t offset, std::string message) {
      return Error{.message = std::move(message), .offset = offset, .cause = Cause{cause}};
    };
    if (storage.view) {
      return fault(CauseKind::kTensorRep, storage.offset,
                   "a storage is a view of another, which archives do not have");
    }
    const auto found = records.find(name);
    if (found == records.end()) {
      return fault(CauseKind::kLayout, storage.offset,
                   "a storage has no record; found no " + name + ", expected " +
                       std::to_string(storage.size) + " bytes");
    }
    const ZipEntry& entry = *found->second;
    archive.storages.insert(name);
    if (entry.size == storage.size) return zip_run(archive.place, entry);
    const bool shorter = entry.size < storage.size;
    return fault(shorter ? CauseKind::kTrunc : CauseKind::kLayout, entry.payload_offset,
                 name + " is " + (shorter ? "shorter" : "longer") + " than its storage; found " +
                     std::to_string(entry.size) + " bytes, expected " +
                     std::to_string(storage.size));
  };
  return {.find = find, .byte_order = archive.byte_order, .read_nested = archive.read_nested};
}

Result<void> read_archive_into(TorchArchive& archive, const PickleTree& tree,
                               Checkpoint& checkpoint) {
  CKPTVERIFY_TRY(auto objects, read_torch_objects(tree, archive_context(archive)));
  claim_archive(archive, checkpoint);
  append(checkpoint.entries, std::move(objects.entries));
  append(checkpoint.findings, std::move(archive.zip.findings));
  append(checkpoint.findings, std::move(archive.findings));
  append(checkpoint.findings, std::move(objects.findings));
  append(checkpoint.uninterpreted, std::move(archive.uninterpreted));
  append(checkpoint.uninterpreted, std::move(objects.uninterpreted));
  return {};
}

}  // namespace ckptverify
