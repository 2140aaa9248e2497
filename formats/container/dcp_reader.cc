// From stored items to tensors: chunks become pieces once the metadata's boxes tile the whole and
// each item is the chunk that the metadata says.
#include "formats/container/dcp_reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "formats/container/dcp_files.h"
#include "formats/container/dcp_generation.h"
#include "formats/container/dcp_names.h"
#include "formats/container/dcp_tiling.h"

namespace ckptverify {
namespace {

class DcpReading {
 public:
  DcpReading(Assembly& assembly, const DcpOptions& options, DcpDescription description)
      : assembly_(assembly),
        options_(options),
        description_(std::move(description)),
        whole_(assembly.table().depth() == Depth::kWhole),
        few_(findings_) {}
  void read();

 private:
  const DcpEntry& entry_of(const DcpStored& stored) const {
    return description_.metadata.entries[stored.entry];
  }
  void sort_stored();
  void compare_replicas();
  bool is_chunk(const DcpStored& stored);
  bool is_tiled(const DcpEntry& entry);
  void add_tensor(std::uint32_t number);
  void add_pieces(const DcpEntry& entry, const std::vector<DcpStored*>& items);
  void add_object(const DcpEntry& entry, DcpStored& stored, std::optional<std::uint32_t> rank);
  void add(const DcpEntry& entry, std::string below, Node node, std::optional<std::uint32_t> rank);
  void add_strays();
  Bytes bytes_of(const DcpStored& stored) const;

  Assembly& assembly_;
  const DcpOptions& options_;
  DcpDescription description_;
  bool whole_;
  std::vector<Finding> findings_;
  FewFindings few_;
  std::vector<DcpStored> stored_;
  std::vector<std::vector<DcpStored*>> of_entry_;  // without replicas that are copies
  std::vector<Entry> entries_;
  std::vector<DcpKeys> keys_;  // of each of entries_
};

Bytes DcpReading::bytes_of(const DcpStored& stored) const {
  return assembly_.checkpoint().files[*stored.file].bytes().subspan(
      static_cast<std::size_t>(stored.slice.offset), static_cast<std::size_t>(stored.slice.size));
}

/// A replica with the same bytes says nothing new; one with others belongs to its rank alone.
void DcpReading::compare_replicas() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, const DcpStored*> first_of_chunk;
  for (const DcpStored& stored : stored_)
    if (!stored.rank && stored.file) first_of_chunk[{stored.entry, stored.chunk}] = &stored;
  for (DcpStored& stored : stored_) {
    if (!stored.rank || !stored.file) continue;
    const auto first = first_of_chunk.find({stored.entry, stored.chunk});
    if (first == first_of_chunk.end()) continue;
    const Bytes a = bytes_of(stored);
    const Bytes b = bytes_of(*first->second);
    if (std::equal(a.begin(), a.end(), b.begin(), b.end())) continue;
    const DcpEntry& entry = entry_of(stored);
    if (entry.chunks.size() == 1) {
      of_entry_[stored.entry].push_back(&stored);
      continue;
    }
    few_.add("replica", dcp_fault(CauseKind::kUncommitted, entry.name,
                                  "two ranks store one chunk with different bytes; found another "
                                  "in " +
                                      description_.metadata.files[stored.slice.file]));
  }
}

void DcpReading::sort_stored() {
  of_entry_.resize(description_.metadata.entries.size());
  for (DcpStored& stored : stored_)
    if (stored.entry != DcpStored::kNoEntry && !stored.rank)
      of_entry_[stored.entry].push_back(&stored);
  if (whole_ && !description_.replicas.empty()) compare_replicas();
}

bool DcpReading::is_tiled(const DcpEntry& entry) {
  std::vector<Box> boxes;
  for (const DcpChunk& chunk : entry.chunks) boxes.push_back({chunk.offsets, chunk.sizes});
  const auto fault = tiling_fault(entry.shape, boxes);
  if (!fault) return true;
  if (fault->undecided)
    assembly_.checkpoint().uninterpreted.push_back(entry.name + ": " + fault->message);
  else
    few_.add(fault->message.substr(0, fault->message.find(';')),
             dcp_fault(fault->cause, entry.name, fault->message));
  return false;
}

/// The tensor in the item against the chunk in the metadata. An intact item of other type or shape
/// is one of another save.
bool DcpReading::is_chunk(const DcpStored& stored) {
  const DcpEntry& entry = entry_of(stored);
  const std::string& file = description_.metadata.files[stored.slice.file];
  const auto& sizes = entry.chunks[stored.chunk].sizes;
  const auto* tensor = stored.entries.size() == 1 && stored.entries[0].path.empty()
                           ? std::get_if<Tensor>(&stored.entries[0].node)
                           : nullptr;
  std::string what;
  if (tensor == nullptr)
    what = "item is no single tensor";
  else if (tensor->dtype != entry.dtype)
    what = "item has another dtype than the metadata says; found " +
           std::string(dtype_name(tensor->dtype)) + ", expected " + entry.dtype_name;
  else if (tensor->shape != sizes)
    what = "item has another shape than the metadata says; found " +
           dimensions_text(tensor->shape) + ", expected " + dimensions_text(sizes);
  if (what.empty()) return true;
  few_.add("differs " + file,
           dcp_fault(CauseKind::kUncommitted, entry.name, what, {{"file", file}}));
  return false;
}

void DcpReading::add(const DcpEntry& entry, std::string below, Node node,
                     std::optional<std::uint32_t> rank) {
  std::string path = options_.path ? options_.path(entry) : entry.name;
  DcpKeys keys = entry.keys.empty() || options_.path ? dcp_keys_of_path(path) : entry.keys;
  if (keys[0].size() > path.size() || path.compare(0, keys[0].size(), keys[0]) != 0)
    keys = dcp_keys_of_path(path);
  if (rank) path.insert(keys[0].size(), "." + std::to_string(*rank));
  if (!below.empty()) path += "." + below;
  entries_.push_back({.path = std::move(path), .node = std::move(node), .rank = rank});
  keys_.push_back(std::move(keys));
}

void DcpReading::add_object(const DcpEntry& entry, DcpStored& stored,
                            std::optional<std::uint32_t> rank) {
  for (Entry& part : stored.entries) add(entry, part.path, std::move(part.node), rank);
}

/// All items are chunks of the entry; together they are the tensor.
void DcpReading::add_pieces(const DcpEntry& entry, const std::vector<DcpStored*>& items) {
  Tensor whole{.dtype = *entry.dtype, .shape = entry.shape, .pieces = {}};
  for (DcpStored* item : items) {
    auto& tensor = std::get<Tensor>(item->entries[0].node);
    const bool first = item == items.front();
    if (first) {
      whole.byte_order = tensor.byte_order;
      whole.conjugate = tensor.conjugate;
      whole.negative = tensor.negative;
      whole.absent = tensor.absent;
    } else if (whole.byte_order != tensor.byte_order || whole.conjugate != tensor.conjugate ||
               whole.negative != tensor.negative || whole.absent != tensor.absent) {
      assembly_.checkpoint().uninterpreted.push_back(entry.name +
                                                     ": its chunks are views of different kinds");
      return;
    }
    for (Piece& piece : tensor.pieces) {
      const auto& offsets = entry.chunks[item->chunk].offsets;
      for (std::size_t d = 0; d < piece.offset.size(); ++d) piece.offset[d] += offsets[d];
      whole.pieces.push_back(std::move(piece));
    }
  }
  add(entry, {}, std::move(whole), {});
}

void DcpReading::add_tensor(std::uint32_t number) {
  const DcpEntry& entry = description_.metadata.entries[number];
  auto& items = of_entry_[number];
  if (!is_tiled(entry)) return;
  std::size_t unstored = 0;
  for (const DcpChunk& chunk : entry.chunks) {
    const bool empty = std::find(chunk.sizes.begin(), chunk.sizes.end(), 0U) != chunk.sizes.end();
    if (!empty && !chunk.slice) ++unstored;
  }
  if (unstored > 0) {
    few_.add("unstored",
             dcp_fault(CauseKind::kShardMissing, entry.name,
                       "chunks are in no file; found " + std::to_string(unstored) + " of " +
                           std::to_string(entry.chunks.size()) + ", expected 0"));
    return;
  }
  if (!entry.dtype) {
    assembly_.checkpoint().uninterpreted.push_back(entry.name + ": unknown dtype \"" +
                                                   entry.dtype_name + "\"");
    return;
  }
  if (!whole_)
    return add(entry, {}, Tensor{.dtype = *entry.dtype, .shape = entry.shape, .pieces = {}}, {});
  const bool all_read =
      std::all_of(items.begin(), items.end(), [](const DcpStored* item) { return item->read; });
  bool all_right = true;
  // One whole tensor of a kind of its own (quantized) is what it is.
  if (items.size() == 1 && items[0]->read && items[0]->entries.size() == 1 &&
      std::holds_alternative<std::shared_ptr<const Composite>>(items[0]->entries[0].node))
    return add(entry, {}, std::move(items[0]->entries[0].node), {});
  for (DcpStored* item : items)
    if (item->read) all_right = is_chunk(*item) && all_right;
  if (!all_read || !all_right) return;  // the loss has been named
  const auto is_replica = [](const DcpStored* item) { return item->rank.has_value(); };
  if (std::none_of(items.begin(), items.end(), is_replica)) return add_pieces(entry, items);
  for (DcpStored* item : items)
    add(entry, {}, std::move(item->entries[0].node),
        item->rank ? *item->rank : description_.ranks[number]);
}

void DcpReading::add_strays() {
  const std::set<std::string> known(description_.metadata.files.begin(),
                                    description_.metadata.files.end());
  for (const std::string& member : assembly_.directory().members()) {
    if (assembly_.is_used(member) || known.contains(member)) continue;
    if (!is_dcp_file(member)) continue;
    const auto file = assembly_.add_file(member);
    if (!file) {
      assembly_.note(Error(file.error()).about(member));
      continue;
    }
    const std::uint64_t size = assembly_.checkpoint().files[*file].bytes().size();
    if (size == 0) continue;  // of a rank that had nothing to store
    assembly_.checkpoint().coverage.own({{*file, 0, size}, Owner::kUnverifiable, "stale file"});
    Finding stale = dcp_fault(CauseKind::kLayout, member,
                              "the metadata does not name this file: it is left from another save");
    stale.status = Status::kWarn;
    stale.cause.reset();
    few_.add("stale", std::move(stale));
  }
}

void DcpReading::read() {
  stored_ =
      read_dcp_files(assembly_, description_, whole_ ? DcpDepth::kItems : DcpDepth::kObjects, few_);
  sort_stored();
  const auto& described = description_.metadata.entries;
  for (std::uint32_t number = 0; number < described.size(); ++number) {
    const DcpEntry& entry = described[number];
    if (entry.is_tensor) {
      add_tensor(number);
      continue;
    }
    if (!entry.chunks[0].slice)
      few_.add("unstored", dcp_fault(CauseKind::kShardMissing, entry.name,
                                     "object is in no file; found none, expected one"));
    const bool ranked = of_entry_[number].size() > 1;
    for (DcpStored* stored : of_entry_[number])
      add_object(entry, *stored,
                 ranked ? std::optional(stored->rank ? *stored->rank : description_.ranks[number])
                        : std::nullopt);
  }
  add_strays();
  few_.finish();
  std::vector<const DcpKeys*> keys;
  for (const DcpKeys& of_one : keys_) keys.push_back(&of_one);
  assign_dcp_components(entries_, keys);
  Checkpoint& checkpoint = assembly_.checkpoint();
  std::move(entries_.begin(), entries_.end(), std::back_inserter(checkpoint.entries));
  std::move(findings_.begin(), findings_.end(), std::back_inserter(checkpoint.findings));
  if (whole_) check_dcp_steps(checkpoint);
}

}  // namespace

bool is_dcp_file(std::string_view member) {
  if (member.find('/') != std::string_view::npos) return false;
  return member.ends_with(".distcp") || member == ".metadata" || rank_of_metadata(member) ||
         is_unfinished_metadata(member);
}

bool has_dcp_files(const Source& directory) {
  return std::any_of(directory.members().begin(), directory.members().end(), is_dcp_file);
}

Result<void> read_dcp_into(Assembly& assembly, const DcpOptions& options) {
  CKPTVERIFY_TRY(DcpDescription description, describe_dcp(assembly));
  DcpReading(assembly, options, std::move(description)).read();
  return {};
}

}  // namespace ckptverify
