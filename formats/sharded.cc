// step-5/
//   shard-00000-of-00004.h5 ...   tensors; size and XXH3-128 of each are in the index
//   index.json                    everything else
//   index.json.xxh3               XXH3-128 of index.json, 32 hexadecimal digits and '\n'
#include "formats/sharded.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/fingerprint.h"
#include "formats/container/assembly.h"
#include "formats/container/sharded_layout.h"
#include "formats/sharded_index.h"

namespace ckptverify {
namespace {

constexpr std::string_view kIndex = "index.json";
constexpr std::string_view kIndexDigest = "index.json.xxh3";
constexpr std::uint64_t kIndexDigestSize = 33;
constexpr std::string_view kCheck = "static.container";
constexpr std::string_view kDigestCheck = "static.checksums";

std::string digest_text(Bytes bytes) {
  return hash_bytes(bytes).hex();
}

Error damaged_index(std::string_view subject, CauseKind cause, std::string message,
                    std::optional<std::uint64_t> offset = {}) {
  return Error{.message = std::move(message),
               .subject = std::string(subject),
               .offset = offset,
               .cause = Cause{cause, {}}};
}

/// index.json, once its digest has been found right.
Result<Source> open_index(const Source& directory) {
  if (!directory.has_member(kIndex))
    return damaged_index(directory.name(), CauseKind::kUncommitted,
                         "shards without an index; found no index.json, expected one");
  if (!directory.has_member(kIndexDigest))
    return damaged_index(directory.name(), CauseKind::kUncommitted,
                         "index without its digest; found no index.json.xxh3, expected one");
  CKPTVERIFY_TRY(Source index, directory.member(kIndex));
  CKPTVERIFY_TRY(const Source digest, directory.member(kIndexDigest));
  const std::string_view text = as_text(digest.bytes());
  if (text.size() < kIndexDigestSize)
    return damaged_index(kIndexDigest, CauseKind::kTrunc,
                         "digest is cut short; found " + std::to_string(text.size()) +
                             " bytes, expected " + std::to_string(kIndexDigestSize),
                         text.size());
  if (text.size() > kIndexDigestSize || text.back() != '\n' ||
      !digest_from_hex(text.substr(0, kIndexDigestSize - 1)))
    return damaged_index(kIndexDigest, CauseKind::kBitrot,
                         "no digest; found " + std::to_string(text.size()) +
                             " bytes, expected 32 hexadecimal digits and a line feed",
                         0);
  const std::string expected(text.substr(0, kIndexDigestSize - 1));
  if (const std::string found = digest_text(index.bytes()); found != expected)
    return damaged_index(
        kIndex, CauseKind::kBitrot,
        "XXH3-128 is not what index.json.xxh3 says; found " + found + ", expected " + expected);
  return index;
}

bool reads(std::string_view index_format, std::string_view shard_format) {
  if (index_format == "torch")
    return shard_format == "torch-zip" || shard_format == "libtorch-archive";
  return shard_format == index_format;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text;
  for (const std::uint64_t dimension : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(dimension);
  return "[" + text + "]";
}

class Reader {
 public:
  Reader(const Source& directory, const FormatTable& table, ShardedIndex index)
      : directory_(directory), table_(table), index_(std::move(index)) {
    checkpoint_.format = "sharded";
    seen_.resize(index_.tensors.size(), false);
    unread_.resize(index_.shards.size(), false);
    for (std::size_t i = 0; i < index_.tensors.size(); ++i)
      tensor_of_path_[index_.tensors[i].path] = i;
  }

  Result<void> add_index_files();
  void add_shard(std::size_t shard);
  void check_names();
  void check_all_seen();
  void add_aliases();
  void add_values();
  Checkpoint finish() &&;

 private:
  void find(CauseKind cause, const std::string& subject, const std::string& message,
            std::vector<Evidence> evidence = {}, std::string_view check = kCheck);
  bool check_shard(const ShardedFile& shard, const Source& member);
  void add_digest(std::uint32_t file, std::string expected);
  void leave_unread(std::size_t shard, const Source& member, std::string label);
  void absorb(std::size_t shard, Checkpoint part, bool intact);
  void absorb_coverage(const Coverage& coverage, std::uint32_t first_file, bool intact);
  bool check_entry(std::size_t shard, const Entry& entry);
  std::vector<Evidence> tensors_in(const ShardedFile& shard) const;

  const Source& directory_;
  const FormatTable& table_;
  ShardedIndex index_;
  Checkpoint checkpoint_;
  std::map<std::string_view, std::size_t> tensor_of_path_;  // into index_.tensors
  std::vector<bool> seen_;                                  // a tensor
  std::vector<bool> unread_;                                // a shard, named already
};

void Reader::find(CauseKind cause, const std::string& subject, const std::string& message,
                  std::vector<Evidence> evidence, std::string_view check) {
  checkpoint_.findings.push_back({.check = std::string(check),
                                  .status = Status::kFail,
                                  .cause = Cause{cause, {}},
                                  .subject = subject,
                                  .message = subject + ": " + message,
                                  .evidence = std::move(evidence)});
}

Result<void> Reader::add_index_files() {
  for (const std::string_view name : {kIndex, kIndexDigest}) {
    CKPTVERIFY_TRY(Source file, directory_.member(name));
    const auto number = static_cast<std::uint32_t>(checkpoint_.files.size());
    checkpoint_.coverage.own({{number, 0, file.bytes().size()},
                              Owner::kMetadata,
                              name == kIndex ? "index" : "digest of the index"});
    checkpoint_.files.push_back(std::move(file));
  }
  const std::string_view digest = as_text(checkpoint_.files.back().bytes());
  add_digest(0, std::string(digest.substr(0, kIndexDigestSize - 1)));
  return {};
}

/// What the loss of a shard costs: the index knows.
std::vector<Evidence> Reader::tensors_in(const ShardedFile& shard) const {
  std::uint64_t count = 0;
  std::string first;
  for (const ShardedTensor& tensor : index_.tensors) {
    if (index_.shards[tensor.shard].name != shard.name) continue;
    if (count++ == 0) first = tensor.path;
  }
  std::vector<Evidence> evidence = {{"tensors in it", std::to_string(count)}};
  if (count > 0) evidence.push_back({"first of them", first});
  return evidence;
}

bool Reader::check_shard(const ShardedFile& shard, const Source& member) {
  const std::uint64_t size = member.bytes().size();
  if (size != shard.size) {
    find(size < shard.size ? CauseKind::kTrunc : CauseKind::kLayout, shard.name,
         "byte " + std::to_string(std::min(size, shard.size)) + ": " +
             (size < shard.size ? "file is cut short" : "bytes follow the shard") + "; found " +
             std::to_string(size) + " bytes, expected " + std::to_string(shard.size),
         tensors_in(shard));
    return false;
  }
  const std::string found = digest_text(member.bytes());
  if (found == shard.digest) return true;
  std::vector<Evidence> evidence = tensors_in(shard);
  evidence.push_back({"algorithm", "xxh3-128"});
  evidence.push_back({"found", found});
  evidence.push_back({"expected", shard.digest});
  find(CauseKind::kBitrot, shard.name,
       "XXH3-128 of the file is wrong; found " + found + ", expected " + shard.digest,
       std::move(evidence), kDigestCheck);
  return false;
}

/// Of a whole file, right when it was read.
void Reader::add_digest(std::uint32_t file, std::string expected) {
  const Source& source = checkpoint_.files[file];
  const std::uint64_t size = source.bytes().size();
  checkpoint_.checksums.push_back(
      {.subject = source.name(),
       .run = {.file = file, .offset = 0, .stored_size = size, .size = size},
       .algorithm = "xxh3-128",
       .expected = std::move(expected),
       .compute = digest_text});
}

void Reader::leave_unread(std::size_t shard, const Source& member, std::string label) {
  unread_[shard] = true;
  const auto number = static_cast<std::uint32_t>(checkpoint_.files.size());
  checkpoint_.files.push_back(member);
  checkpoint_.coverage.own(
      {{number, 0, member.bytes().size()}, Owner::kUnverifiable, std::move(label)});
}

void Reader::add_shard(std::size_t shard) {
  const ShardedFile& file = index_.shards[shard];
  if (!directory_.has_member(file.name)) {
    unread_[shard] = true;
    return find(CauseKind::kShardMissing, file.name,
                "shard is missing; found no file, expected " + std::to_string(file.size) + " bytes",
                tensors_in(file));
  }
  auto member = directory_.member(file.name);
  if (!member) {
    unread_[shard] = true;
    checkpoint_.findings.push_back(
        finding_of(std::move(member).error().about(file.name), std::string(kCheck)));
    return;
  }
  const bool intact = check_shard(file, *member);
  // The HDF5 library must not meet damage that we already know of; our own readers may.
  if (!intact && index_.format == "hdf5")
    return leave_unread(shard, *member, "damaged shard, not opened");
  auto part = table_.read(*member);
  if (!part) {
    // Of a damaged file, its reader's complaint says nothing new.
    if (intact) checkpoint_.findings.push_back(finding_of(part.error(), std::string(kCheck)));
    return leave_unread(shard, *member, "shard that its reader refuses");
  }
  if (!reads(index_.format, part->format))
    find(CauseKind::kLayout, file.name,
         "shard has another format; found " + part->format + ", expected " + index_.format);
  absorb(shard, std::move(*part), intact);
}

/// Bytes that the shard's format does not protect are protected by the digest of the whole file.
void Reader::absorb_coverage(const Coverage& coverage, std::uint32_t first_file, bool intact) {
  for (OwnedRange owned : coverage.sorted()) {
    owned.range.file += first_file;
    if (intact && owned.owner == Owner::kUnverifiable) owned.owner = Owner::kMetadata;
    checkpoint_.coverage.own(std::move(owned));
  }
}

void Reader::absorb(std::size_t shard, Checkpoint part, bool intact) {
  const std::string& name = index_.shards[shard].name;
  const auto first_file = static_cast<std::uint32_t>(checkpoint_.files.size());
  for (Source& file : part.files) checkpoint_.files.push_back(std::move(file));
  if (intact) add_digest(first_file, index_.shards[shard].digest);
  absorb_coverage(part.coverage, first_file, intact);
  for (Entry& entry : part.entries) {
    if (!check_entry(shard, entry)) continue;
    entry.node = shifted(std::move(entry.node), first_file);
    checkpoint_.entries.push_back(std::move(entry));
  }
  for (StoredChecksum& checksum : part.checksums) {
    checksum.run.file += first_file;
    if (checksum.subject.find(name) == std::string::npos) checksum.subject += " in " + name;
    checkpoint_.checksums.push_back(std::move(checksum));
  }
  for (Finding& finding : part.findings) {
    if (finding.subject != name) finding.evidence.push_back({"file", name});
    checkpoint_.findings.push_back(std::move(finding));
  }
  for (const std::string& text : part.uninterpreted)
    checkpoint_.uninterpreted.push_back(name + ": " + text);
}

/// Whether the entry belongs to the checkpoint; what is wrong with it becomes a finding.
bool Reader::check_entry(std::size_t shard, const Entry& entry) {
  const std::string& file = index_.shards[shard].name;
  const auto* tensor = std::get_if<Tensor>(&entry.node);
  // The modules of a LibTorch archive have flags of their own (training): no state of the run.
  if (tensor == nullptr && index_.format == "torch" && std::holds_alternative<Value>(entry.node))
    return false;
  const auto known = tensor_of_path_.find(entry.path);
  if (known == tensor_of_path_.end()) {
    find(CauseKind::kStStruct, entry.path, "is not in the index; found it in " + file,
         {{"file", file}});
    return true;
  }
  const ShardedTensor& expected = index_.tensors[known->second];
  if (expected.shard != shard) {
    find(CauseKind::kStStruct, entry.path,
         "lies in another shard than the index says; found " + file + ", expected " +
             index_.shards[expected.shard].name,
         {{"file", file}});
    seen_[known->second] = true;
    return true;
  }
  seen_[known->second] = true;
  if (tensor == nullptr)
    find(CauseKind::kStStruct, entry.path, "is no tensor in " + file + "; expected a tensor");
  else if (tensor->dtype != expected.dtype)
    find(CauseKind::kStStruct, entry.path,
         "has another dtype than the index says; found " + std::string(dtype_name(tensor->dtype)) +
             ", expected " + std::string(dtype_name(expected.dtype)));
  else if (tensor->shape != expected.shape)
    find(CauseKind::kStStruct, entry.path,
         "has another shape than the index says; found " + shape_text(tensor->shape) +
             ", expected " + shape_text(expected.shape));
  return true;
}

void Reader::check_all_seen() {
  for (std::size_t i = 0; i < index_.tensors.size(); ++i) {
    const ShardedTensor& tensor = index_.tensors[i];
    if (seen_[i] || unread_[tensor.shard]) continue;
    find(CauseKind::kStStruct, tensor.path,
         "is not in its shard; found nothing, expected it in " + index_.shards[tensor.shard].name);
  }
}

void Reader::check_names() {
  std::set<std::string_view> listed = {kIndex, kIndexDigest};
  for (const ShardedFile& shard : index_.shards) listed.insert(shard.name);
  for (const std::string& member : directory_.members())
    if (!listed.contains(member))
      find(CauseKind::kLayout, member, "file is not in the index; found it, expected none");
  const std::string name = directory_name(directory_);
  if (is_temporary_name(name))
    find(CauseKind::kUncommitted, name,
         "directory was never committed; found a temporary name, expected step-" +
             std::to_string(index_.step));
  const auto step = step_of_name(name);
  if (step && *step != index_.step)
    find(CauseKind::kLayout, name,
         "directory has another step than its index; found " + std::to_string(*step) +
             ", expected " + std::to_string(index_.step));
  for (const auto& [path, value] : index_.values) {
    const auto* inside = path == "step" ? std::get_if<std::int64_t>(&value) : nullptr;
    if (inside != nullptr && std::cmp_not_equal(*inside, index_.step))
      find(CauseKind::kStepCount, "values.step",
           "is another step than the index's; found " + std::to_string(*inside) + ", expected " +
               std::to_string(index_.step));
  }
}

void Reader::add_aliases() {
  std::map<std::string_view, const Entry*> stored;
  for (const Entry& entry : checkpoint_.entries) stored[entry.path] = &entry;
  std::vector<Entry> copies;
  for (const ShardedAlias& alias : index_.aliases) {
    const auto found = stored.find(index_.tensors[alias.tensor].path);
    if (found == stored.end()) continue;  // its loss has been named
    Entry copy = *found->second;
    copy.path = alias.path;
    copy.alias_of = found->second->path;
    copies.push_back(std::move(copy));
  }
  for (Entry& copy : copies) checkpoint_.entries.push_back(std::move(copy));
}

void Reader::add_values() {
  for (auto& [path, value] : index_.values)
    checkpoint_.entries.push_back({.path = path, .node = std::move(value)});
}

Checkpoint Reader::finish() && {
  assign_components(checkpoint_.entries);
  sort_entries(checkpoint_);
  return std::move(checkpoint_);
}

}  // namespace

bool sniff_sharded(const Source& source) {
  return source.is_directory() && is_sharded_checkpoint(source);
}

Result<Checkpoint> read_sharded(const Source& source, const FormatTable& table) {
  CKPTVERIFY_TRY(const Source index_file, open_index(source));
  auto index = parse_sharded_index(as_text(index_file.bytes()));
  if (!index) return std::move(index).error().about(std::string(kIndex));
  const std::size_t shard_count = index->shards.size();
  Reader reader(source, table, std::move(*index));
  CKPTVERIFY_TRY_VOID(reader.add_index_files());
  for (std::size_t shard = 0; shard < shard_count; ++shard) reader.add_shard(shard);
  reader.check_all_seen();
  reader.check_names();
  reader.add_aliases();
  reader.add_values();
  return std::move(reader).finish();
}

}  // namespace ckptverify
