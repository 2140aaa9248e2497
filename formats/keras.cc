// .keras
//
//   zip: | metadata.json | config.json | model.weights.h5 (or .npz) | assets/... | directory |
//
//   The weights are read as a file of their own, which a copy in memory is.
#include "formats/keras.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/container/assembly.h"
#include "formats/container/keras_components.h"
#include "formats/container/zip.h"
#include "formats/encoding/deflate.h"
#include "formats/encoding/json_values.h"

namespace ckptverify {
namespace {

constexpr std::string_view kMetadata = "metadata.json";
constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kWeights = "model.weights.";
constexpr std::string_view kAssets = "assets/";
constexpr std::string_view kConfigRoot = "config.";
// They are copied, twice for HDF5's child; the weights of larger models are sharded files.
constexpr std::uint64_t kWeightsBytesMax = std::uint64_t{4} << 30;
// A few stored bytes may claim a thousand times as many decoded ones.
constexpr std::uint64_t kInflatedBytesFree = std::uint64_t{64} << 20;
constexpr std::uint64_t kInflationMax = 64;

class Reader {
 public:
  Reader(const Source& source, const FormatTable& table)
      : place_{.bytes = source.bytes()}, table_(table) {
    checkpoint_.format = "keras";
    checkpoint_.files = {source};
  }
  Result<Checkpoint> read() &&;

 private:
  void add_member(const ZipEntry& entry);
  Result<void> add_weights(const ZipEntry& entry);
  Result<void> add_json(const ZipEntry& entry);
  Result<std::vector<std::byte>> payload(const ZipEntry& entry) const;
  bool has(std::string_view name) const {
    return std::any_of(names_.begin(), names_.end(),
                       [name](const std::string& each) { return each.starts_with(name); });
  }
  std::string own_name(const ZipEntry& entry) const {
    return entry.name + " in " + checkpoint_.files.front().name();
  }

  ArchivePlace place_;
  const FormatTable& table_;
  Checkpoint checkpoint_;
  std::vector<std::string> names_;
};

Result<std::vector<std::byte>> Reader::payload(const ZipEntry& entry) const {
  const bool bomb = entry.deflated && entry.size > kInflatedBytesFree &&
                    entry.size / kInflationMax > entry.stored_size;
  if (entry.size > kWeightsBytesMax || bomb)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "is too large to be copied; found " + std::to_string(entry.size) +
                            " bytes, expected at most " + std::to_string(kWeightsBytesMax) +
                            " and at most " + std::to_string(kInflationMax) +
                            " times the stored ones",
                 .offset = entry.payload_offset};
  return zip_payload(place_, entry, kWeightsBytesMax);
}

Result<void> Reader::add_weights(const ZipEntry& entry) {
  CKPTVERIFY_TRY(auto bytes, payload(entry));
  const Source weights = Source::memory(entry.name, std::move(bytes));
  CKPTVERIFY_TRY(Checkpoint part, table_.read(weights));
  assign_keras_components(part.entries);
  const auto first_file = static_cast<std::uint32_t>(checkpoint_.files.size());
  for (Source& file : part.files) checkpoint_.files.push_back(std::move(file));
  checkpoint_.coverage.absorb(std::move(part.coverage), first_file);
  for (StoredChecksum& checksum : part.checksums) {
    if (checksum.run.owned == nullptr) checksum.run.file += first_file;
    checkpoint_.checksums.push_back(std::move(checksum));
  }
  for (Entry& each : part.entries) {
    each.node = shifted(std::move(each.node), first_file);
    checkpoint_.entries.push_back(std::move(each));
  }
  checkpoint_.findings.insert(checkpoint_.findings.end(), part.findings.begin(),
                              part.findings.end());
  checkpoint_.uninterpreted.insert(checkpoint_.uninterpreted.end(), part.uninterpreted.begin(),
                                   part.uninterpreted.end());
  return {};
}

Result<void> Reader::add_json(const ZipEntry& entry) {
  CKPTVERIFY_TRY(const auto bytes, payload(entry));
  auto values = json_values(as_text(bytes));
  if (!values) {
    Error error = std::move(values).error();
    error.cause = Cause{CauseKind::kBitrot, {}};
    return error;
  }
  for (Entry& value : *values) {
    value.path = std::string(kConfigRoot) +
                 (entry.name == kMetadata ? "metadata." : "architecture.") + value.path;
    value.component = Component::kConfig;
    value.root_size = kConfigRoot.size();
    checkpoint_.entries.push_back(std::move(value));
  }
  return {};
}

void Reader::add_member(const ZipEntry& entry) {
  const bool weights = entry.name.starts_with(kWeights);
  checkpoint_.coverage.own({{0, entry.payload_offset, entry.stored_size},
                            weights ? Owner::kTensor : Owner::kMetadata,
                            entry.name});
  checkpoint_.checksums.push_back(
      {.subject = own_name(entry),
       .run = {.file = 0,
               .offset = entry.payload_offset,
               .stored_size = entry.stored_size,
               .size = entry.stored_size},
       .algorithm = "crc32",
       .expected = crc32_text(entry.crc),
       .compute = entry.deflated ? crc32_of_deflated : crc32_of_stored});
  Result<void> added;
  if (weights)
    added = add_weights(entry);
  else if (entry.name == kConfig || entry.name == kMetadata)
    added = add_json(entry);
  else if (!entry.name.starts_with(kAssets))
    checkpoint_.uninterpreted.push_back(own_name(entry) + " is nothing that Keras writes");
  if (!added)
    checkpoint_.findings.push_back(
        finding_of(std::move(added).error().about(own_name(entry)), "static.container"));
}

Result<Checkpoint> Reader::read() && {
  CKPTVERIFY_TRY(ZipArchive archive, read_zip(place_));
  checkpoint_.findings = std::move(archive.findings);
  for (OwnedRange& range : archive.framing) checkpoint_.coverage.own(std::move(range));
  for (const ZipEntry& entry : archive.entries) {
    names_.push_back(entry.name);
    add_member(entry);
  }
  for (const std::string_view name : {kMetadata, kConfig, kWeights}) {
    if (has(name)) continue;
    const std::string& file = checkpoint_.files.front().name();
    checkpoint_.findings.push_back({.check = "static.container",
                                    .status = Status::kFail,
                                    .cause = Cause{CauseKind::kShardMissing, {}},
                                    .subject = file,
                                    .message = file + ": has no " + std::string(name)});
  }
  sort_entries(checkpoint_);
  return std::move(checkpoint_);
}

}  // namespace

bool sniff_keras(const Source& source) {
  if (source.is_directory()) return false;
  const std::string_view first = first_zip_name(source.bytes());
  return first == kMetadata || first == kConfig;
}

Result<Checkpoint> read_keras(const Source& source, const FormatTable& table) {
  return Reader(source, table).read();
}

}  // namespace ckptverify
