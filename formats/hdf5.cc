// HDF5: superblock, groups of datasets, attributes.
//
//   superblock | object headers, B-trees, heaps ... | contiguous datasets, chunks, in any order
//
// What is not a dataset's data has no checksum in the old file format, so it is owned as
// unverifiable.
#include "formats/hdf5.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/fingerprint.h"
#include "formats/container/hdf5_filters.h"
#include "formats/container/hdf5_probe.h"
#include "formats/container/hdf5_superblock.h"
#include "formats/container/keras_components.h"
#include "formats/encoding/state_components.h"
#include "formats/hdf5_tensor.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";
constexpr std::string_view kDTypeAttribute = "dtype";
constexpr std::string_view kDigestAttribute = "xxh3";

std::string digest_text(Bytes bytes) {
  return hash_bytes(bytes).hex();
}

Finding finding(Status status, std::optional<Cause> cause, const std::string& subject,
                const std::string& message) {
  return Finding{.check = std::string(kCheck),
                 .status = status,
                 .cause = cause,
                 .subject = subject,
                 .message = subject + ": " + message};
}

/// The text of a scalar string attribute; null where there is none of that name.
const std::string* text_attribute(const Hdf5Dataset& dataset, std::string_view name) {
  for (const Hdf5Attribute& attribute : dataset.attributes) {
    if (attribute.name != name || !attribute.scalar || !attribute.values) continue;
    return std::get_if<std::string>(&attribute.values->front());
  }
  return nullptr;
}

/// Builds the checkpoint from the listing, dataset by dataset.
class Builder {
 public:
  explicit Builder(const Source& source) {
    checkpoint_.format = "hdf5";
    checkpoint_.files = {source};
  }

  void add(const Hdf5Superblock& superblock);
  void add(const Hdf5Dataset& dataset);
  void add(const Hdf5Group& group);
  void add(const Hdf5Note& note);
  Checkpoint finish() &&;

 private:
  std::optional<DType> dtype_of(const Hdf5Dataset& dataset);
  void add_tensor(const Hdf5Dataset& dataset, DType dtype);
  void add_digest(const Hdf5Dataset& dataset);
  std::string chunk_name(const Hdf5Dataset& dataset, const Hdf5Chunk& chunk) const;
  void add_chunk_checksums(const Hdf5Dataset& dataset);
  void add_attributes(const std::string& path, const std::vector<Hdf5Attribute>& attributes);
  void own_data(const Hdf5Dataset& dataset);
  void own(std::uint64_t offset, std::uint64_t size, Owner owner, std::string label) {
    checkpoint_.coverage.own({{0, offset, size}, owner, std::move(label)});
  }

  Checkpoint checkpoint_;
  std::map<std::uint64_t, std::string> path_of_address_;  // datasets by their object header
  GroupNames component_groups_;                           // at the root: /model, not /layer1
};

void Builder::add(const Hdf5Superblock& superblock) {
  const Source& file = checkpoint_.files.front();
  const std::uint64_t size = file.bytes().size();
  if (superblock.open_for_writing)
    checkpoint_.findings.push_back(finding(
        Status::kFail, Cause{CauseKind::kTornWrite, {}}, file.name(),
        "byte 11: the file was not closed after writing; found its write flag set, expected 0"));
  if (superblock.end_of_file == size) return;
  own(superblock.end_of_file, size - superblock.end_of_file, Owner::kUnverifiable,
      "after the end of the file");
  checkpoint_.findings.push_back(
      finding(Status::kWarn, {}, file.name(),
              "byte " + std::to_string(superblock.end_of_file) +
                  ": bytes follow the end that the superblock states; found " +
                  std::to_string(size) + ", expected " + std::to_string(superblock.end_of_file)));
}

void Builder::add(const Hdf5Group& group) {
  if (component_of_key(group.path) != Component::kOther) component_groups_.insert(group.path);
  add_attributes(group.path, group.attributes);
}

void Builder::add(const Hdf5Dataset& dataset) {
  const auto [known, is_new] = path_of_address_.emplace(dataset.address, dataset.path);
  if (is_new) own_data(dataset);
  if (dataset.text) {
    checkpoint_.entries.push_back({.path = dataset.path, .node = Value(*dataset.text)});
  } else if (const auto dtype = dtype_of(dataset)) {
    add_tensor(dataset, *dtype);
    if (!is_new && !checkpoint_.entries.empty() && checkpoint_.entries.back().path == dataset.path)
      checkpoint_.entries.back().alias_of = known->second;
  } else {
    checkpoint_.uninterpreted.push_back(
        "dataset '" + dataset.path + "': no tensor has elements of " +
        std::to_string(dataset.type.size) + " bytes of class " + dataset.type.name);
  }
  add_attributes(dataset.path, dataset.attributes);
}

std::optional<DType> Builder::dtype_of(const Hdf5Dataset& dataset) {
  const auto stored = dtype_of_hdf5(dataset.type);
  const std::string* name = text_attribute(dataset, kDTypeAttribute);
  if (name == nullptr) return stored;
  const auto named = dtype_named(*name);
  if (named && hdf5_holds(dataset.type, *named)) return named;
  checkpoint_.findings.push_back(
      finding(Status::kFail, Cause{CauseKind::kTensorRep, {}}, dataset.path,
              "attribute dtype does not fit the stored type; found '" + *name + "', expected " +
                  (stored ? std::string(dtype_name(*stored))
                          : std::to_string(dataset.type.size) + " bytes an element")));
  return stored;
}

void Builder::add_tensor(const Hdf5Dataset& dataset, DType dtype) {
  auto result = tensor_of_hdf5(dataset, dtype);
  if (!result) {
    const Error& error = result.error();
    if (error.kind == ErrorKind::kUnsupported)
      checkpoint_.uninterpreted.push_back("dataset '" + dataset.path + "': " + error.message);
    else
      checkpoint_.findings.push_back(
          finding(Status::kFail, error.cause, dataset.path, error.message));
    return;
  }
  if (result->unwritten_count > 0)
    checkpoint_.findings.push_back(
        finding(Status::kWarn, {}, dataset.path,
                std::to_string(result->unwritten_count) +
                    " parts were never written, the fill value stands for them; expected 0"));
  checkpoint_.entries.push_back({.path = dataset.path, .node = std::move(result->tensor)});
  add_digest(dataset);
  if (path_of_address_[dataset.address] == dataset.path) add_chunk_checksums(dataset);
}

/// "w, its chunk at [0, 4], in weights.h5".
std::string Builder::chunk_name(const Hdf5Dataset& dataset, const Hdf5Chunk& chunk) const {
  std::string text = dataset.path + ", its chunk at [";
  for (std::size_t d = 0; d < chunk.offset.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(chunk.offset[d]);
  return text + "], in " + checkpoint_.files.front().name();
}

void Builder::add_chunk_checksums(const Hdf5Dataset& dataset) {
  const auto filter = std::find(dataset.filters.begin(), dataset.filters.end(), kHdf5Fletcher32);
  if (filter == dataset.filters.end()) return;
  const auto place = static_cast<std::size_t>(filter - dataset.filters.begin());
  for (const Hdf5Chunk& chunk : dataset.chunks) {
    if (place < 32 && (chunk.filter_mask >> place & 1U) != 0) continue;  // not applied to it
    const Run run{
        .offset = chunk.stored.offset, .stored_size = chunk.stored.size, .size = chunk.stored.size};
    const auto stored = stored_bytes(checkpoint_, run);
    if (!stored) continue;  // who reads the tensor says so
    checkpoint_.checksums.push_back({.subject = chunk_name(dataset, chunk),
                                     .run = run,
                                     .algorithm = "fletcher32",
                                     .expected = hdf5_stored_checksum(*stored),
                                     .compute = hdf5_chunk_checksum});
  }
}

void Builder::add_digest(const Hdf5Dataset& dataset) {
  const std::string* expected = text_attribute(dataset, kDigestAttribute);
  if (expected == nullptr) return;
  if (!digest_from_hex(*expected)) {
    checkpoint_.findings.push_back(finding(
        Status::kFail, Cause{CauseKind::kBitrot, {}}, dataset.path,
        "attribute xxh3 is no digest; found '" + *expected + "', expected 32 hexadecimal digits"));
    return;
  }
  checkpoint_.checksums.push_back({.subject = dataset.path,
                                   .run = {},
                                   .algorithm = "xxh3-128",
                                   .expected = *expected,
                                   .compute = digest_text,
                                   .entry = dataset.path});
}

void Builder::add_attributes(const std::string& path,
                             const std::vector<Hdf5Attribute>& attributes) {
  for (const Hdf5Attribute& attribute : attributes) {
    const std::string name = path.empty() ? attribute.name : path + "." + attribute.name;
    const bool ours = attribute.name == kDTypeAttribute || attribute.name == kDigestAttribute;
    if (ours && attribute.scalar && attribute.values) continue;
    if (!attribute.values) {
      checkpoint_.uninterpreted.push_back("attribute '" + name +
                                          "': its type or size is not one that is read");
      continue;
    }
    auto& entries = checkpoint_.entries;
    if (attribute.values->empty()) entries.push_back({.path = name, .node = Value(EmptyList{})});
    for (std::size_t i = 0; i < attribute.values->size(); ++i)
      entries.push_back({.path = attribute.scalar ? name : name + "." + std::to_string(i),
                         .node = (*attribute.values)[i]});
  }
}

void Builder::own_data(const Hdf5Dataset& dataset) {
  // The bytes of a string are addresses of other bytes: no data by themselves.
  const Owner owner = dataset.text ? Owner::kUnverifiable : Owner::kTensor;
  if (dataset.contiguous)
    own(dataset.contiguous->offset, dataset.contiguous->size, owner, dataset.path);
  for (const Hdf5Chunk& chunk : dataset.chunks)
    own(chunk.stored.offset, chunk.stored.size, owner, dataset.path);
}

void Builder::add(const Hdf5Note& note) {
  const std::string subject = note.path.empty() ? "the root group" : note.path;
  if (note.kind == Hdf5NoteKind::kUnread)
    checkpoint_.uninterpreted.push_back("'" + subject + "': " + note.what);
  else if (note.kind == Hdf5NoteKind::kDamaged)
    checkpoint_.findings.push_back(
        finding(Status::kFail, Cause{CauseKind::kBitrot, {}}, subject, note.what));
  else
    checkpoint_.findings.push_back(
        finding(Status::kWarn, {}, subject, note.what + " was not followed"));
}

Checkpoint Builder::finish() && {
  const std::array<std::uint64_t, 1> sizes = {checkpoint_.files.front().bytes().size()};
  for (const ByteRange& gap : checkpoint_.coverage.gaps(sizes))
    own(gap.offset, gap.size, Owner::kUnverifiable, "hdf5 metadata");
  if (is_keras_weights(checkpoint_.entries))
    assign_keras_components(checkpoint_.entries);
  else
    assign_state_components(checkpoint_.entries, component_groups_);
  sort_entries(checkpoint_);
  return std::move(checkpoint_);
}

}  // namespace

bool sniff_hdf5(const Source& source) {
  return !source.is_directory() && has_hdf5_signature(source.bytes());
}

Result<Checkpoint> read_hdf5(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(const Hdf5Superblock superblock, parse_hdf5_superblock(source.bytes()));
  CKPTVERIFY_TRY(const Hdf5Listing listing, probe_hdf5(source));
  Builder builder(source);
  builder.add(superblock);
  for (const Hdf5Group& group : listing.groups) builder.add(group);
  for (const Hdf5Dataset& dataset : listing.datasets) builder.add(dataset);
  for (const Hdf5Note& note : listing.notes) builder.add(note);
  return std::move(builder).finish();
}

}  // namespace ckptverify
