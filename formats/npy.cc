// npy and npz.
//
//   npy: | magic, version, size | {'descr': ..., 'fortran_order': ..., 'shape': ...} | data |
//   npz: zip: | a.npy | b.npy | ... | directory |
#include "formats/npy.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/container/zip.h"
#include "formats/encoding/deflate.h"
#include "formats/encoding/npy_header.h"
#include "formats/encoding/state_components.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";
constexpr std::string_view kSuffix = ".npy";
// A few stored bytes may claim a thousand times as many decoded ones. Below this much they are
// decoded all the same; without the limit, a file of a megabyte could ask for a gigabyte.
constexpr std::uint64_t kInflatedBytesFree = std::uint64_t{64} << 20;
constexpr std::uint64_t kInflationMax = 64;

/// Adds what the header says of the bytes of `run`, which it is the begin of.
Result<void> add_array(const std::string& path, Bytes decoded, const Run& run,
                       Checkpoint& checkpoint) {
  CKPTVERIFY_TRY(const NpyHeader header, parse_npy_header(decoded));
  CKPTVERIFY_TRY_VOID(check_npy_size(header, decoded.size()));
  if (!header.dtype) {
    checkpoint.uninterpreted.push_back("array '" + path + "': elements of type " + header.descr);
    return {};
  }
  CKPTVERIFY_TRY(Tensor tensor, npy_tensor(header, run));
  checkpoint.entries.push_back({.path = path, .node = std::move(tensor)});
  return {};
}

/// What is wrong with an array, at a byte of the file; of a deflated one no byte of the file is it.
Result<void> placed(Result<void> added, const ZipEntry& entry) {
  if (added || !added.error().offset) return added;
  Error error = std::move(added).error();
  if (entry.deflated) {
    error.message = "byte " + std::to_string(*error.offset) + " once decoded: " + error.message;
    error.offset.reset();
  } else {
    *error.offset += entry.payload_offset;
  }
  return error;
}

void add_member(const ArchivePlace& place, const ZipEntry& entry, Checkpoint& checkpoint) {
  const std::string& file = checkpoint.files.front().name();
  const auto add = [&]() -> Result<void> {
    if (entry.deflated && entry.size > kInflatedBytesFree &&
        entry.size / kInflationMax > entry.stored_size)
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "decodes to suspiciously much; found " + std::to_string(entry.size) +
                              " bytes from " + std::to_string(entry.stored_size) +
                              ", expected at most " + std::to_string(kInflationMax) +
                              " times as many",
                   .offset = entry.payload_offset};
    const std::string path = entry.name.substr(0, entry.name.size() - kSuffix.size());
    Run run = zip_run(place, entry);
    if (!entry.deflated) {
      CKPTVERIFY_TRY(const Bytes stored,
                     slice(place.bytes, entry.payload_offset, entry.stored_size));
      return placed(add_array(path, stored, run, checkpoint), entry);
    }
    CKPTVERIFY_TRY(const auto decoded, zip_payload(place, entry, entry.size));
    return placed(add_array(path, decoded, run, checkpoint), entry);
  };
  if (auto added = add(); !added)
    checkpoint.findings.push_back(finding_of(
        std::move(added).error().about(entry.name + " in " + file), std::string(kCheck)));
}

void add_checksum(const ZipEntry& entry, Checkpoint& checkpoint) {
  checkpoint.checksums.push_back({.subject = entry.name + " in " + checkpoint.files.front().name(),
                                  .run = {.file = 0,
                                          .offset = entry.payload_offset,
                                          .stored_size = entry.stored_size,
                                          .size = entry.stored_size},
                                  .algorithm = "crc32",
                                  .expected = crc32_text(entry.crc),
                                  .compute = entry.deflated ? crc32_of_deflated : crc32_of_stored});
}

}  // namespace

bool sniff_npy(const Source& source) {
  return !source.is_directory() && has_npy_magic(source.bytes());
}

Result<Checkpoint> read_npy(const Source& source, const FormatTable&) {
  const std::uint64_t size = source.bytes().size();
  Checkpoint checkpoint;
  checkpoint.format = "npy";
  checkpoint.files = {source};
  const Run run{.file = 0, .offset = 0, .stored_size = size, .size = size};
  CKPTVERIFY_TRY_VOID(add_array("", source.bytes(), run, checkpoint));
  CKPTVERIFY_TRY(const NpyHeader header, parse_npy_header(source.bytes()));
  checkpoint.coverage.own({{0, 0, header.data_offset}, Owner::kMetadata, "header"});
  checkpoint.coverage.own({{0, header.data_offset, size - header.data_offset},
                           header.dtype ? Owner::kTensor : Owner::kUnverifiable,
                           "data"});
  return checkpoint;
}

bool sniff_npz(const Source& source) {
  return !source.is_directory() && first_zip_name(source.bytes()).ends_with(kSuffix);
}

Result<Checkpoint> read_npz(const Source& source, const FormatTable&) {
  const ArchivePlace place{.bytes = source.bytes()};
  CKPTVERIFY_TRY(ZipArchive archive, read_zip(place));
  Checkpoint checkpoint;
  checkpoint.format = "npz";
  checkpoint.files = {source};
  checkpoint.findings = std::move(archive.findings);
  for (OwnedRange& range : archive.framing) checkpoint.coverage.own(std::move(range));
  for (const ZipEntry& entry : archive.entries) {
    const bool array = entry.name.ends_with(kSuffix);
    checkpoint.coverage.own({{0, entry.payload_offset, entry.stored_size},
                             array ? Owner::kTensor : Owner::kMetadata,
                             entry.name});
    add_checksum(entry, checkpoint);
    if (array)
      add_member(place, entry, checkpoint);
    else
      checkpoint.uninterpreted.push_back("'" + entry.name + "' in the archive is no array");
  }
  assign_state_components(checkpoint.entries, {});
  sort_entries(checkpoint);
  return checkpoint;
}

}  // namespace ckptverify
