// Source: torch/distributed/checkpoint/filesystem.py (finish): the metadata is written under a
// temporary name after all data, the old one is deleted, then the new one is renamed.
#include "formats/container/dcp_sources.h"

#include <algorithm>
#include <charconv>
#include <compare>
#include <iterator>
#include <map>
#include <span>
#include <string_view>

namespace ckptverify {
namespace {

constexpr std::string_view kMetadata = ".metadata";
constexpr std::string_view kUnfinished = ".tmp";
constexpr std::string_view kRankPrefix = "__";

Result<DcpMetadata> read_file(Assembly& assembly, const std::string& name) {
  CKPTVERIFY_TRY(const std::uint32_t file, assembly.add_file(name));
  const Bytes bytes = assembly.checkpoint().files[file].bytes();
  assembly.checkpoint().coverage.own(
      {{file, 0, bytes.size()}, Owner::kUnverifiable, "metadata, which no checksum protects"});
  auto metadata = read_dcp_metadata(bytes);
  if (!metadata) return std::move(metadata).error().about(name);
  auto& findings = assembly.checkpoint().findings;
  std::move(metadata->findings.begin(), metadata->findings.end(), std::back_inserter(findings));
  return metadata;
}

/// Offsets and sizes of a chunk; the numbers stay where they are when chunks move.
using BoxView = std::pair<std::span<const std::uint64_t>, std::span<const std::uint64_t>>;

struct BoxBefore {
  bool operator()(const BoxView& a, const BoxView& b) const {
    const auto order = std::lexicographical_compare_three_way(a.first.begin(), a.first.end(),
                                                              b.first.begin(), b.first.end());
    if (order != 0) return order < 0;
    return std::lexicographical_compare(a.second.begin(), a.second.end(), b.second.begin(),
                                        b.second.end());
  }
};

/// The chunks of an entry by their boxes; of two with one box, the first.
using ChunkOfBox = std::map<BoxView, std::uint32_t, BoxBefore>;

BoxView box_of(const DcpChunk& chunk) {
  return {chunk.offsets, chunk.sizes};
}

class Merging {
 public:
  explicit Merging(Assembly& assembly) : assembly_(assembly) {
    description_.metadata.transforms.emplace_back();
  }
  void add(DcpMetadata from, std::uint32_t rank);
  DcpDescription finish() && { return std::move(description_); }

 private:
  void add_entry(DcpEntry entry, std::uint32_t rank);
  void add_chunks(std::uint32_t number, std::vector<DcpChunk> chunks, std::uint32_t rank);

  Assembly& assembly_;
  DcpDescription description_;
  std::unordered_map<std::string, std::uint32_t> entry_of_name_;
  std::vector<ChunkOfBox> chunk_of_box_;  // of each entry; empty until a second rank has it
  std::map<std::string, std::uint32_t> file_of_name_;
};

/// Numbers of files and transforms as the whole description counts them.
void Merging::add(DcpMetadata from, std::uint32_t rank) {
  DcpMetadata& whole = description_.metadata;
  std::vector<std::uint32_t> files;
  std::vector<std::uint32_t> transforms;
  for (const std::string& name : from.files) {
    const auto [known, added] =
        file_of_name_.emplace(name, static_cast<std::uint32_t>(whole.files.size()));
    if (added) whole.files.push_back(name);
    files.push_back(known->second);
  }
  // A handful of each.
  for (const auto& list : from.transforms) {
    const auto known = std::find(whole.transforms.begin(), whole.transforms.end(), list);
    transforms.push_back(static_cast<std::uint32_t>(known - whole.transforms.begin()));
    if (known == whole.transforms.end()) whole.transforms.push_back(list);
  }
  const auto renumber = [&](DcpSlice& slice) {
    slice.file = files[slice.file];
    slice.transforms = transforms[slice.transforms];
  };
  for (DcpOrphan& orphan : from.orphans) {
    renumber(orphan.slice);
    whole.orphans.push_back(std::move(orphan));
  }
  for (DcpEntry& entry : from.entries) {
    for (DcpChunk& chunk : entry.chunks)
      if (chunk.slice) renumber(*chunk.slice);
    add_entry(std::move(entry), rank);
  }
  if (whole.version.empty()) whole.version = from.version;
}

void Merging::add_entry(DcpEntry entry, std::uint32_t rank) {
  std::vector<DcpEntry>& entries = description_.metadata.entries;
  const auto [known, added] =
      entry_of_name_.emplace(entry.name, static_cast<std::uint32_t>(entries.size()));
  if (added) {
    entries.push_back(std::move(entry));
    description_.ranks.push_back(rank);
    chunk_of_box_.emplace_back();
    return;
  }
  const DcpEntry& first = entries[known->second];
  if (first.is_tensor != entry.is_tensor || first.dtype_name != entry.dtype_name ||
      first.shape != entry.shape) {
    assembly_.fail(CauseKind::kLayout, entry.name,
                   "rank " + std::to_string(rank) + " describes it in another way than rank " +
                       std::to_string(description_.ranks[known->second]));
    return;
  }
  add_chunks(known->second, std::move(entry.chunks), rank);
}

void Merging::add_chunks(std::uint32_t number, std::vector<DcpChunk> chunks, std::uint32_t rank) {
  std::vector<DcpChunk>& first = description_.metadata.entries[number].chunks;
  ChunkOfBox& known = chunk_of_box_[number];
  if (known.empty())
    for (std::uint32_t i = 0; i < first.size(); ++i) known.emplace(box_of(first[i]), i);
  for (DcpChunk& chunk : chunks) {
    const auto [same, added] =
        known.emplace(box_of(chunk), static_cast<std::uint32_t>(first.size()));
    if (added)
      first.push_back(std::move(chunk));
    else if (chunk.slice && !first[same->second].slice)
      first[same->second].slice = chunk.slice;
    else if (chunk.slice)
      description_.replicas.push_back({number, same->second, rank, *chunk.slice});
  }
}

Error nothing_committed(const Source& directory) {
  const auto shards =
      std::count_if(directory.members().begin(), directory.members().end(),
                    [](const std::string& member) { return member.ends_with(".distcp"); });
  return Error{.message = "the save was never committed; found " + std::to_string(shards) +
                          " .distcp files and no .metadata, which is written last",
               .cause = Cause{CauseKind::kUncommitted, {}}};
}

}  // namespace

std::optional<std::uint32_t> rank_of_metadata(std::string_view member) {
  if (!member.starts_with(kRankPrefix) || !member.ends_with(kMetadata)) return std::nullopt;
  member.remove_prefix(kRankPrefix.size());
  member.remove_suffix(kMetadata.size());
  std::uint32_t rank = 0;
  const auto [end, failure] = std::from_chars(member.data(), member.data() + member.size(), rank);
  if (failure != std::errc() || end != member.data() + member.size()) return std::nullopt;
  return rank;
}

bool is_unfinished_metadata(std::string_view member) {
  if (!member.ends_with(kUnfinished)) return false;
  member.remove_suffix(kUnfinished.size());
  return member == kMetadata || rank_of_metadata(member);
}

Result<DcpDescription> describe_dcp(Assembly& assembly) {
  const Source& directory = assembly.directory();
  std::vector<std::pair<std::uint32_t, std::string>> ranks;
  std::vector<std::string> unfinished;
  for (const std::string& member : directory.members()) {
    if (const auto rank = rank_of_metadata(member)) ranks.emplace_back(*rank, member);
    if (is_unfinished_metadata(member)) unfinished.push_back(member);
  }
  const bool committed = directory.has_member(kMetadata);
  for (const std::string& member : unfinished)
    assembly.fail(
        CauseKind::kUncommitted, member,
        committed || !ranks.empty()
            ? "a save over this one was interrupted; found metadata that was never renamed"
            : "the save was interrupted before its metadata got its name");
  if (committed || (ranks.empty() && !unfinished.empty())) {
    DcpDescription description;
    const std::string name = committed ? std::string(kMetadata) : unfinished.front();
    CKPTVERIFY_TRY(description.metadata, read_file(assembly, name));
    return description;
  }
  if (ranks.empty()) return nothing_committed(directory).about(directory.name());
  std::sort(ranks.begin(), ranks.end());
  Merging merging(assembly);
  for (const auto& [rank, name] : ranks) {
    auto metadata = read_file(assembly, name);
    if (metadata)
      merging.add(*std::move(metadata), rank);
    else
      assembly.note(metadata.error());
  }
  return std::move(merging).finish();
}

}  // namespace ckptverify
