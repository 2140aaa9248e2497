// Source: torch/distributed/checkpoint/filesystem.py (finish): the metadata is written under a
// temporary name after all data, the old one is deleted, then the new one is renamed.
#include "formats/container/dcp_sources.h"

#include <algorithm>
#include <charconv>
#include <iterator>
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

class Merging {
 public:
  explicit Merging(Assembly& assembly) : assembly_(assembly) {
    description_.metadata.transforms.emplace_back();
  }
  void add(DcpMetadata from, std::uint32_t rank);
  DcpDescription finish() && { return std::move(description_); }

 private:
  void add_entry(DcpEntry entry, std::uint32_t rank);

  Assembly& assembly_;
  DcpDescription description_;
  std::unordered_map<std::string, std::uint32_t> entry_of_name_;
};

/// Numbers of files and transforms as the whole description counts them.
void Merging::add(DcpMetadata from, std::uint32_t rank) {
  DcpMetadata& whole = description_.metadata;
  const auto number_in = [](auto& list, const auto& value) {
    const auto found = std::find(list.begin(), list.end(), value);
    if (found != list.end()) return static_cast<std::uint32_t>(found - list.begin());
    list.push_back(value);
    return static_cast<std::uint32_t>(list.size() - 1);
  };
  std::vector<std::uint32_t> files;
  std::vector<std::uint32_t> transforms;
  for (const std::string& file : from.files) files.push_back(number_in(whole.files, file));
  for (const auto& list : from.transforms) transforms.push_back(number_in(whole.transforms, list));
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
    return;
  }
  DcpEntry& first = entries[known->second];
  if (first.is_tensor != entry.is_tensor || first.dtype_name != entry.dtype_name ||
      first.shape != entry.shape) {
    assembly_.fail(CauseKind::kLayout, entry.name,
                   "rank " + std::to_string(rank) + " describes it in another way than rank " +
                       std::to_string(description_.ranks[known->second]));
    return;
  }
  for (DcpChunk& chunk : entry.chunks) {
    const auto same =
        std::find_if(first.chunks.begin(), first.chunks.end(), [&chunk](const DcpChunk& other) {
          return other.offsets == chunk.offsets && other.sizes == chunk.sizes;
        });
    if (same == first.chunks.end()) {
      first.chunks.push_back(std::move(chunk));
    } else if (chunk.slice && !same->slice) {
      same->slice = chunk.slice;
    } else if (chunk.slice) {
      description_.replicas.push_back({known->second,
                                       static_cast<std::uint32_t>(same - first.chunks.begin()),
                                       rank, *chunk.slice});
    }
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
