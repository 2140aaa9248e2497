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

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/python_names.h"

namespace ckptverify {
namespace {

// A chunk's description takes more bytes than this; a shared one could otherwise be repeated
// without end.
constexpr std::size_t kChunkBytesMin = 8;
// PyTorch's own limit on dimensions is 64.
constexpr std::size_t kDimensionsMax = 64;
constexpr std::size_t kKeysMax = 256;
constexpr std::size_t kTransformsMax = 16;
// No class of the metadata has as many attributes; a shared dictionary must not be searched for
// each of a million objects.
constexpr std::size_t kAttributesMax = 64;
// A name stands in the pickle once and is copied for each chunk: of real metadata into about as
// many bytes as the pickle has, of a hostile one without end.
constexpr std::size_t kNameBytesFree = 1 << 20;
constexpr std::size_t kNameBytesEachByte = 32;

Error impossible(const std::string& message) {
  return Error{.message = "metadata: " + message, .cause = Cause{CauseKind::kBitrot, {}}};
}

bool is_none(const PickleNode* node) {
  return node == nullptr || node->is_none();
}

std::string_view text_of(const PickleNode* node) {
  return node == nullptr ? std::string_view() : node->string().value_or(std::string_view());
}

/// The class that an object is of, without its module.
std::string_view class_of(const PickleNode& node) {
  const bool made = node.kind == PickleKind::kObject || node.kind == PickleKind::kCall;
  return made ? node.items()[0]->name() : std::string_view();
}

/// Null for what is none: {...}, OrderedDict() and what it is given.
const PickleNode* mapping(const PickleNode* node) {
  if (node == nullptr) return nullptr;
  const bool named = node->kind == PickleKind::kCall && is_mapping_call(callee(*node));
  return node->kind == PickleKind::kDict || named ? node : nullptr;
}

/// The items of a tuple, a list, or of torch.Size((...)).
std::optional<PickleItems> sequence(const PickleNode* node) {
  if (node != nullptr && node->kind == PickleKind::kCall && class_of(*node) == "Size")
    node = argument(*node, 0);
  if (node == nullptr || (node->kind != PickleKind::kTuple && node->kind != PickleKind::kList))
    return std::nullopt;
  return node->items();
}

const PickleNode* find(const PickleNode* object, std::string_view name) {
  return object == nullptr ? nullptr : attribute(*object, name, kAttributesMax);
}

/// The chunks of one tensor by their offsets, for when the hint misses.
using ChunkOrder = std::vector<std::uint32_t>;

class MetadataReading {
 public:
  explicit MetadataReading(std::size_t bytes)
      : chunks_left_(bytes / kChunkBytesMin),
        name_bytes_left_(kNameBytesFree + kNameBytesEachByte * bytes) {}

  Result<DcpMetadata> read(const PickleNode& root);

 private:
  Result<std::string> name_of(const PickleNode* text);
  Result<void> add_entry(const PickleNode& name, const PickleNode& description);
  Result<void> add_tensor(DcpEntry& entry, const PickleNode& description);
  Result<void> add_keys(const PickleNode& planner_data);
  Result<void> add_slice(const PickleNode& index, const PickleNode& info);
  std::uint32_t file_of(const std::string& path);
  Result<std::uint32_t> transforms_of(const PickleNode* descriptors, const std::string& name);
  DcpChunk* chunk_of(std::size_t entry, const PickleNode& index,
                     const std::vector<std::uint64_t>& offsets);

  std::size_t chunks_left_;
  std::size_t name_bytes_left_;
  DcpMetadata metadata_;
  std::unordered_map<std::string_view, std::size_t> entry_of_name_;
  std::unordered_map<std::string, std::uint32_t> file_of_path_;
  std::unordered_map<std::size_t, ChunkOrder> orders_;
};

Result<std::uint64_t> natural(const PickleNode* node, const std::string& name) {
  const auto value = node == nullptr ? std::nullopt : node->integer();
  if (!value || *value < 0)
    return impossible(name + " has a size or offset that is no natural number");
  return static_cast<std::uint64_t>(*value);
}

Result<std::vector<std::uint64_t>> dimensions(const PickleNode* node, const std::string& name) {
  const auto items = sequence(node);
  if (!items) return impossible(name + " has sizes or offsets that are no tuple");
  if (items->size() > kDimensionsMax)
    return impossible(name + " has too many dimensions; found " + std::to_string(items->size()) +
                      ", expected at most " + std::to_string(kDimensionsMax));
  std::vector<std::uint64_t> numbers(items->size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CKPTVERIFY_TRY(numbers[i], natural((*items)[i], name));
  }
  return numbers;
}

/// The properties' state is a tuple that begins with the dtype; without __getstate__ it has names.
const PickleNode* dtype_of(const PickleNode* properties) {
  if (properties == nullptr) return nullptr;
  const PickleItems states = properties->states();
  const bool tuple = !states.empty() && states[0]->kind == PickleKind::kTuple;
  if (tuple && states[0]->items().size() > 2) return states[0]->items()[0];
  return find(properties, "dtype");
}

/// A copy of the text, empty for what is none.
Result<std::string> MetadataReading::name_of(const PickleNode* text) {
  const std::string_view name = text_of(text);
  const std::size_t bytes = sizeof(std::string) + name.size();
  if (bytes > name_bytes_left_)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "metadata: its names unfold to more than its size allows"};
  name_bytes_left_ -= bytes;
  return std::string(name);
}

Result<void> MetadataReading::add_tensor(DcpEntry& entry, const PickleNode& description) {
  entry.is_tensor = true;
  const PickleNode* dtype = dtype_of(find(&description, "properties"));
  if (dtype != nullptr && dtype->module() == "torch") entry.dtype_name = std::string(dtype->name());
  entry.dtype = dtype_named(entry.dtype_name);
  CKPTVERIFY_TRY(entry.shape, dimensions(find(&description, "size"), entry.name));
  const PickleNode* chunks = find(&description, "chunks");
  if (chunks == nullptr || chunks->kind != PickleKind::kList)
    return impossible(entry.name + " has no list of chunks");
  const PickleItems listed = chunks->items();
  if (listed.size() > chunks_left_)
    return impossible("more chunks than its bytes can describe, at " + entry.name);
  chunks_left_ -= listed.size();
  entry.chunks.resize(listed.size());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    DcpChunk& chunk = entry.chunks[i];
    CKPTVERIFY_TRY(chunk.offsets, dimensions(find(listed[i], "offsets"), entry.name));
    CKPTVERIFY_TRY(chunk.sizes, dimensions(find(listed[i], "sizes"), entry.name));
    if (chunk.offsets.size() != entry.shape.size() || chunk.sizes.size() != entry.shape.size())
      return impossible(entry.name + " has a chunk of other dimensions; found " +
                        std::to_string(chunk.sizes.size()) + ", expected " +
                        std::to_string(entry.shape.size()));
  }
  return {};
}

Result<void> MetadataReading::add_entry(const PickleNode& name, const PickleNode& description) {
  if (!name.string()) return impossible("an entry's name is no text");
  DcpEntry entry;
  CKPTVERIFY_TRY(entry.name, name_of(&name));
  const std::string_view type = class_of(description);
  if (type == "TensorStorageMetadata") {
    CKPTVERIFY_TRY_VOID(add_tensor(entry, description));
  } else if (type == "BytesStorageMetadata") {
    entry.chunks.resize(1);
  } else {
    return impossible(entry.name + " is neither a tensor nor bytes; found \"" + std::string(type) +
                      "\"");
  }
  // Python keeps the last of two values of one key.
  const auto [known, added] = entry_of_name_.emplace(*name.string(), metadata_.entries.size());
  if (added)
    metadata_.entries.push_back(std::move(entry));
  else
    metadata_.entries[known->second] = std::move(entry);
  return {};
}

Result<void> MetadataReading::add_keys(const PickleNode& planner_data) {
  for (const auto& [name, path] : planner_data.pairs()) {
    const auto known = entry_of_name_.find(text_of(name));
    if (known == entry_of_name_.end() || path->kind != PickleKind::kTuple) continue;
    if (path->items().size() > kKeysMax) return impossible("a path of too many keys");
    std::vector<std::string> keys;
    for (const PickleNode* key : path->items()) {
      if (!key->string() && !key->integer())
        return impossible("a path whose key is neither text nor a number");
      CKPTVERIFY_TRY(std::string text, name_of(key));
      keys.push_back(key->string() ? std::move(text) : key_text(*key));
    }
    metadata_.entries[known->second].keys = std::move(keys);
  }
  return {};
}

std::uint32_t MetadataReading::file_of(const std::string& path) {
  const auto [known, added] =
      file_of_path_.emplace(path, static_cast<std::uint32_t>(metadata_.files.size()));
  if (added) metadata_.files.emplace_back(path);
  return known->second;
}

Result<std::uint32_t> MetadataReading::transforms_of(const PickleNode* descriptors,
                                                     const std::string& name) {
  std::vector<std::string> list;
  const auto listed = is_none(descriptors) ? PickleItems() : sequence(descriptors);
  if (!listed) return impossible(name + " has transforms that are no list");
  if (listed->size() > kTransformsMax) return impossible(name + " has too many transforms");
  for (const PickleNode* one : *listed) {
    CKPTVERIFY_TRY(list.emplace_back(), name_of(one));
  }
  auto& known = metadata_.transforms;
  const auto found = std::find(known.begin(), known.end(), list);
  const auto index = static_cast<std::uint32_t>(found - known.begin());
  if (found == known.end()) known.push_back(std::move(list));
  if (known.size() > kTransformsMax) return impossible("too many kinds of transforms");
  return index;
}

/// The hint first; then by offsets. Of two chunks with one offset, the one that holds something.
DcpChunk* MetadataReading::chunk_of(std::size_t entry, const PickleNode& index,
                                    const std::vector<std::uint64_t>& offsets) {
  std::vector<DcpChunk>& chunks = metadata_.entries[entry].chunks;
  const auto holds = [](const DcpChunk& chunk) {
    return std::find(chunk.sizes.begin(), chunk.sizes.end(), 0U) == chunk.sizes.end();
  };
  const PickleNode* hint = find(&index, "index");
  if (const auto number = hint == nullptr ? std::nullopt : hint->integer();
      number && *number >= 0) {
    const auto place = static_cast<std::size_t>(*number);
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

Result<void> MetadataReading::add_slice(const PickleNode& index, const PickleNode& info) {
  CKPTVERIFY_TRY(const std::string name, name_of(find(&index, "fqn")));
  const PickleNode* path = find(&info, "relative_path");
  if (path == nullptr || !path->string() || name.empty())
    return impossible("a stored item without a name or a file");
  CKPTVERIFY_TRY(const std::string file, name_of(path));
  DcpSlice slice{.file = file_of(file)};
  CKPTVERIFY_TRY(slice.offset, natural(find(&info, "offset"), name));
  CKPTVERIFY_TRY(slice.size, natural(find(&info, "length"), name));
  CKPTVERIFY_TRY(slice.transforms, transforms_of(find(&info, "transform_descriptors"), name));
  const PickleNode* offset = find(&index, "offset");
  const auto known = entry_of_name_.find(name);
  DcpChunk* chunk = nullptr;
  if (known != entry_of_name_.end()) {
    DcpEntry& entry = metadata_.entries[known->second];
    if (!entry.is_tensor && is_none(offset) && !entry.chunks[0].slice) chunk = &entry.chunks[0];
    if (entry.is_tensor && !is_none(offset)) {
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

Result<DcpMetadata> MetadataReading::read(const PickleNode& root) {
  const PickleNode* described = mapping(find(&root, "state_dict_metadata"));
  const PickleNode* stored = mapping(find(&root, "storage_data"));
  if (described == nullptr || stored == nullptr)
    return impossible("the pickle's root has no state_dict_metadata or no storage_data");
  metadata_.transforms.emplace_back();
  metadata_.entries.reserve(described->pairs().size());
  for (const auto& [name, description] : described->pairs())
    CKPTVERIFY_TRY_VOID(add_entry(*name, *description));
  // Another planner than PyTorch's keeps what it likes.
  if (const PickleNode* planner_data = mapping(find(&root, "planner_data")))
    CKPTVERIFY_TRY_VOID(add_keys(*planner_data));
  for (const auto& [index, info] : stored->pairs()) CKPTVERIFY_TRY_VOID(add_slice(*index, *info));
  metadata_.version = std::string(text_of(find(&root, "version")));
  metadata_.save_id = std::string(text_of(find(find(&root, "storage_meta"), "save_id")));
  return std::move(metadata_);
}

}  // namespace

Result<DcpMetadata> read_dcp_metadata(Bytes bytes) {
  CKPTVERIFY_TRY(const PickleTree tree, read_pickle(bytes));
  if (tree.end() != bytes.size())
    return Error{.message = "bytes follow the metadata's pickle; found " +
                            std::to_string(bytes.size() - tree.end()) + ", expected 0",
                 .offset = tree.end(),
                 .cause = Cause{CauseKind::kLayout, {}}};
  CKPTVERIFY_TRY(DcpMetadata metadata, MetadataReading(bytes.size()).read(tree.root()));
  // Frameworks have metadata classes of their own: only what is dangerous counts.
  for (Finding& finding : judge_globals(tree)) {
    if (finding.status == Status::kFail) metadata.findings.push_back(std::move(finding));
  }
  return metadata;
}

}  // namespace ckptverify
