// .metadata, a pickle:
//
//   Metadata {state_dict_metadata, planner_data, storage_data[, storage_meta, version]}
//     state_dict_metadata {name: TensorStorageMetadata {properties (dtype, ...), size,
//                                  chunks [ChunkStorageMetadata {offsets, sizes}]}
//                              | BytesStorageMetadata}
//     planner_data        {name: (key, ...)}
//     storage_data        {MetadataIndex {fqn[, offset, index]}:
//                            _StorageInfo {relative_path, offset, length[, transform_descriptors]}}
//
// Source: torch/distributed/checkpoint/metadata.py and filesystem.py.
#include "formats/container/dcp_metadata.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "formats/container/dcp_pickle.h"

namespace ckptverify {
namespace {

// A chunk's description takes more bytes than this; a shared one could otherwise be repeated
// without end.
constexpr std::size_t kChunkBytesMin = 8;
// PyTorch's own limit on dimensions is 64.
constexpr std::size_t kDimensionsMax = 64;
constexpr std::size_t kKeysMax = 256;
constexpr std::size_t kTransformsMax = 16;

Error impossible(const std::string& message) {
  return Error{.message = "metadata: " + message, .cause = Cause{CauseKind::kBitrot, {}}};
}

/// The chunks of one tensor by their offsets, for when the hint misses.
using ChunkOrder = std::vector<std::uint32_t>;

class MetadataReading {
 public:
  MetadataReading(const CellPickle& pickle, std::size_t bytes)
      : pickle_(pickle), chunks_left_(bytes / kChunkBytesMin) {}

  Result<DcpMetadata> read();

 private:
  std::string text_of(Cell cell) const { return std::string(pickle_.text(cell)); }
  Result<void> add_entry(Cell name, Cell description);
  Result<void> add_tensor(DcpEntry& entry, Cell description);
  Result<std::vector<std::uint64_t>> dimensions(Cell cell, const std::string& name) const;
  Result<std::uint64_t> natural(Cell cell, const std::string& name) const;
  Result<void> add_keys(Cell planner_data);
  Result<void> add_slice(Cell index, Cell info);
  std::uint32_t file_of(std::string_view path);
  Result<std::uint32_t> transforms_of(Cell descriptors, const std::string& name);
  DcpChunk* chunk_of(std::size_t entry, Cell index, const std::vector<std::uint64_t>& offsets);

  const CellPickle& pickle_;
  std::size_t chunks_left_;
  DcpMetadata metadata_;
  std::unordered_map<std::string_view, std::size_t> entry_of_name_;
  std::unordered_map<std::string, std::uint32_t> file_of_path_;
  std::unordered_map<std::size_t, ChunkOrder> orders_;
};

Result<std::uint64_t> MetadataReading::natural(Cell cell, const std::string& name) const {
  if (cell.kind != CellKind::kInteger || pickle_.integer(cell) < 0)
    return impossible(name + " has a size or offset that is no natural number");
  return static_cast<std::uint64_t>(pickle_.integer(cell));
}

Result<std::vector<std::uint64_t>> MetadataReading::dimensions(Cell cell,
                                                               const std::string& name) const {
  if (cell.kind != CellKind::kTuple && cell.kind != CellKind::kList)
    return impossible(name + " has sizes or offsets that are no tuple");
  const std::size_t count = pickle_.count(cell);
  if (count > kDimensionsMax)
    return impossible(name + " has too many dimensions; found " + std::to_string(count) +
                      ", expected at most " + std::to_string(kDimensionsMax));
  std::vector<std::uint64_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    CKPTVERIFY_TRY(numbers[i], natural(pickle_.item(cell, i), name));
  }
  return numbers;
}

Result<void> MetadataReading::add_tensor(DcpEntry& entry, Cell description) {
  entry.is_tensor = true;
  // The properties' state is a tuple that begins with the dtype; without __getstate__ it has names.
  const Cell properties = pickle_.find(description, "properties");
  Cell dtype = pickle_.find(properties, "dtype");
  if (properties.kind == CellKind::kObject && pickle_.count(properties) > 1) {
    const Cell state = pickle_.item(properties, 1);
    if (state.kind == CellKind::kTuple && pickle_.count(state) > 2) dtype = pickle_.item(state, 0);
  }
  if (pickle_.module(dtype) == "torch") entry.dtype_name = std::string(pickle_.name(dtype));
  entry.dtype = dtype_named(entry.dtype_name);
  CKPTVERIFY_TRY(entry.shape, dimensions(pickle_.find(description, "size"), entry.name));
  const Cell chunks = pickle_.find(description, "chunks");
  const std::size_t count = pickle_.count(chunks);
  if (chunks.kind != CellKind::kList) return impossible(entry.name + " has no list of chunks");
  if (count > chunks_left_)
    return impossible("more chunks than its bytes can describe, at " + entry.name);
  chunks_left_ -= count;
  entry.chunks.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Cell chunk = pickle_.item(chunks, i);
    CKPTVERIFY_TRY(entry.chunks[i].offsets, dimensions(pickle_.find(chunk, "offsets"), entry.name));
    CKPTVERIFY_TRY(entry.chunks[i].sizes, dimensions(pickle_.find(chunk, "sizes"), entry.name));
    if (entry.chunks[i].offsets.size() != entry.shape.size() ||
        entry.chunks[i].sizes.size() != entry.shape.size())
      return impossible(entry.name + " has a chunk of other dimensions; found " +
                        std::to_string(entry.chunks[i].sizes.size()) + ", expected " +
                        std::to_string(entry.shape.size()));
  }
  return {};
}

Result<void> MetadataReading::add_entry(Cell name, Cell description) {
  DcpEntry entry;
  entry.name = text_of(name);
  if (name.kind != CellKind::kText) return impossible("an entry's name is no text");
  const std::string_view type = pickle_.name(description);
  if (type == "TensorStorageMetadata") {
    CKPTVERIFY_TRY_VOID(add_tensor(entry, description));
  } else if (type == "BytesStorageMetadata") {
    entry.chunks.resize(1);
  } else {
    return impossible(entry.name + " is neither a tensor nor bytes; found \"" + std::string(type) +
                      "\"");
  }
  // Python keeps the last of two values of one key.
  const auto [known, added] = entry_of_name_.emplace(pickle_.text(name), metadata_.entries.size());
  if (added)
    metadata_.entries.push_back(std::move(entry));
  else
    metadata_.entries[known->second] = std::move(entry);
  return {};
}

Result<void> MetadataReading::add_keys(Cell planner_data) {
  if (planner_data.kind != CellKind::kDict) return {};  // a planner of its own
  for (std::size_t i = 0; i + 1 < pickle_.count(planner_data); i += 2) {
    const auto known = entry_of_name_.find(pickle_.text(pickle_.item(planner_data, i)));
    const Cell path = pickle_.item(planner_data, i + 1);
    if (known == entry_of_name_.end() || path.kind != CellKind::kTuple) continue;
    if (pickle_.count(path) > kKeysMax) return impossible("a path of too many keys");
    std::vector<std::string> keys;
    for (std::size_t k = 0; k < pickle_.count(path); ++k) {
      const Cell key = pickle_.item(path, k);
      if (key.kind != CellKind::kText && key.kind != CellKind::kInteger)
        return impossible("a path whose key is neither text nor a number");
      keys.push_back(key.kind == CellKind::kText ? text_of(key)
                                                 : std::to_string(pickle_.integer(key)));
    }
    metadata_.entries[known->second].keys = std::move(keys);
  }
  return {};
}

std::uint32_t MetadataReading::file_of(std::string_view path) {
  const auto [known, added] =
      file_of_path_.emplace(std::string(path), static_cast<std::uint32_t>(metadata_.files.size()));
  if (added) metadata_.files.emplace_back(path);
  return known->second;
}

Result<std::uint32_t> MetadataReading::transforms_of(Cell descriptors, const std::string& name) {
  std::vector<std::string> list;
  if (descriptors.kind != CellKind::kNone && descriptors.kind != CellKind::kList &&
      descriptors.kind != CellKind::kTuple)
    return impossible(name + " has transforms that are no list");
  if (pickle_.count(descriptors) > kTransformsMax)
    return impossible(name + " has too many transforms");
  for (std::size_t i = 0; i < pickle_.count(descriptors); ++i)
    list.push_back(text_of(pickle_.item(descriptors, i)));
  auto& known = metadata_.transforms;
  const auto found = std::find(known.begin(), known.end(), list);
  const auto index = static_cast<std::uint32_t>(found - known.begin());
  if (found == known.end()) known.push_back(std::move(list));
  if (known.size() > kTransformsMax) return impossible("too many kinds of transforms");
  return index;
}

/// The hint first; then by offsets. Of two chunks with one offset, the one that holds something.
DcpChunk* MetadataReading::chunk_of(std::size_t entry, Cell index,
                                    const std::vector<std::uint64_t>& offsets) {
  std::vector<DcpChunk>& chunks = metadata_.entries[entry].chunks;
  const auto holds = [](const DcpChunk& chunk) {
    return std::find(chunk.sizes.begin(), chunk.sizes.end(), 0U) == chunk.sizes.end();
  };
  const Cell hint = pickle_.find(index, "index");
  if (hint.kind == CellKind::kInteger && pickle_.integer(hint) >= 0) {
    const auto place = static_cast<std::size_t>(pickle_.integer(hint));
    if (place < chunks.size() && chunks[place].offsets == offsets && !chunks[place].slice &&
        holds(chunks[place]))
      return &chunks[place];
  }
  auto [order, added] = orders_.emplace(entry, ChunkOrder());
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (chunks[a].offsets != chunks[b].offsets) return chunks[a].offsets < chunks[b].offsets;
    return holds(chunks[a]) && !holds(chunks[b]);
  };
  if (added) {
    order->second.resize(chunks.size());
    std::iota(order->second.begin(), order->second.end(), 0U);
    std::sort(order->second.begin(), order->second.end(), before);
  }
  const auto found = std::lower_bound(
      order->second.begin(), order->second.end(), offsets,
      [&](std::uint32_t a, const auto& wanted) { return chunks[a].offsets < wanted; });
  if (found == order->second.end() || chunks[*found].offsets != offsets) return nullptr;
  return chunks[*found].slice ? nullptr : &chunks[*found];
}

Result<void> MetadataReading::add_slice(Cell index, Cell info) {
  const std::string name = text_of(pickle_.find(index, "fqn"));
  const Cell path = pickle_.find(info, "relative_path");
  if (path.kind != CellKind::kText || name.empty())
    return impossible("a stored item without a name or a file");
  DcpSlice slice{.file = file_of(pickle_.text(path))};
  CKPTVERIFY_TRY(slice.offset, natural(pickle_.find(info, "offset"), name));
  CKPTVERIFY_TRY(slice.size, natural(pickle_.find(info, "length"), name));
  CKPTVERIFY_TRY(slice.transforms,
                 transforms_of(pickle_.find(info, "transform_descriptors"), name));
  const Cell offset = pickle_.find(index, "offset");
  const auto known = entry_of_name_.find(pickle_.text(pickle_.find(index, "fqn")));
  DcpChunk* chunk = nullptr;
  if (known != entry_of_name_.end()) {
    DcpEntry& entry = metadata_.entries[known->second];
    if (!entry.is_tensor && offset.kind == CellKind::kNone && !entry.chunks[0].slice)
      chunk = &entry.chunks[0];
    if (entry.is_tensor && offset.kind != CellKind::kNone) {
      CKPTVERIFY_TRY(const auto offsets, dimensions(offset, name));
      chunk = chunk_of(known->second, index, offsets);
    }
  }
  if (chunk != nullptr)
    chunk->slice = slice;
  else
    metadata_.orphans.push_back({name, slice});
  return {};
}

Result<DcpMetadata> MetadataReading::read() {
  const Cell root = pickle_.root();
  const Cell described = pickle_.find(root, "state_dict_metadata");
  const Cell stored = pickle_.find(root, "storage_data");
  if (described.kind != CellKind::kDict || stored.kind != CellKind::kDict)
    return impossible("the pickle's root has no state_dict_metadata or no storage_data");
  metadata_.transforms.emplace_back();
  metadata_.entries.reserve(pickle_.count(described) / 2);
  for (std::size_t i = 0; i + 1 < pickle_.count(described); i += 2)
    CKPTVERIFY_TRY_VOID(add_entry(pickle_.item(described, i), pickle_.item(described, i + 1)));
  CKPTVERIFY_TRY_VOID(add_keys(pickle_.find(root, "planner_data")));
  for (std::size_t i = 0; i + 1 < pickle_.count(stored); i += 2)
    CKPTVERIFY_TRY_VOID(add_slice(pickle_.item(stored, i), pickle_.item(stored, i + 1)));
  metadata_.version = text_of(pickle_.find(root, "version"));
  metadata_.save_id = text_of(pickle_.find(pickle_.find(root, "storage_meta"), "save_id"));
  return std::move(metadata_);
}

}  // namespace

Result<DcpMetadata> read_dcp_metadata(Bytes bytes) {
  CKPTVERIFY_TRY(const CellPickle pickle, CellPickle::read(bytes));
  if (pickle.end() != bytes.size())
    return Error{.message = "bytes follow the metadata's pickle; found " +
                            std::to_string(bytes.size() - pickle.end()) + ", expected 0",
                 .offset = pickle.end(),
                 .cause = Cause{CauseKind::kLayout, {}}};
  return MetadataReading(pickle, bytes.size()).read();
}

}  // namespace ckptverify
