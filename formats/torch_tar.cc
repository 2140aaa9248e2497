// torch.save of before 0.2, a tar archive:
//
//   sys_info   a pickled dictionary
//   storages   n | (key, location, class) | count | elements | ... | [(key, root, first, count)...]
//   tensors    n | (key, storage, class) | rank | 0 | sizes | strides | offset | ...
//   pickle     the object; a persistent id is the key of a tensor or a storage
//
//   n and what stands in parentheses or brackets is a pickle; rank is 32 bits wide, all other
//   numbers are 64, little-endian.
//
// Source: torch/serialization.py (legacy_load).
#include "formats/torch_tar.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "formats/container/tar.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {
namespace {

// PyTorch's own limit on dimensions.
constexpr std::int32_t kRankMax = 64;
constexpr std::array<std::string_view, 4> kMembers = {"sys_info", "storages", "tensors", "pickle"};

Error fault(std::uint64_t offset, CauseKind cause, std::string message) {
  return {.message = std::move(message), .offset = offset, .cause = Cause{cause}};
}

/// A key: an integer, also where it is written as text.
std::optional<std::string> key_of(const PickleNode& node) {
  if (const auto number = node.integer()) return std::to_string(*number);
  if (const auto text = node.string()) return std::string(*text);
  return std::nullopt;
}

class TarReading {
 public:
  TarReading(const Source& source, const TarArchive& tar) : source_(source), tar_(tar) {}
  Result<Checkpoint> run();

 private:
  Result<Bytes> member(std::string_view name);
  Result<PickleTree> next_pickle(ByteReader& reader);
  Result<PickleItems> next_tuple(ByteReader& reader, PickleTree& tree, std::size_t size);
  Result<void> read_storages();
  Result<void> read_storage(ByteReader& reader);
  Result<void> read_views(ByteReader& reader);
  Result<void> read_tensors();
  Result<void> read_tensor(ByteReader& reader);
  Result<void> expect_end(const ByteReader& reader, std::string_view name);
  Result<std::vector<std::uint64_t>> numbers(ByteReader& reader, std::size_t count);
  void claim(std::uint64_t begin, std::uint64_t end, Owner owner, std::string label) {
    checkpoint_.coverage.own({{0, begin, end - begin}, owner, std::move(label)});
  }

  const Source& source_;
  const TarArchive& tar_;
  Checkpoint checkpoint_;
  Bytes at_hand_;  // the member being read
  std::uint64_t base_ = 0;
  std::map<std::string, Tensor> storages_;  // of one dimension
  std::map<std::string, Tensor> tensors_;
};

Result<Bytes> TarReading::member(std::string_view name) {
  const auto found = std::find_if(tar_.members.begin(), tar_.members.end(),
                                  [&](const TarMember& other) { return other.name == name; });
  if (found == tar_.members.end()) {
    return fault(0, CauseKind::kLayout, "the archive has no member " + std::string(name));
  }
  base_ = found->offset;
  CKPTVERIFY_TRY(at_hand_, slice(source_.bytes(), found->offset, found->size));
  return at_hand_;
}

Result<PickleTree> TarReading::next_pickle(ByteReader& reader) {
  const std::uint64_t begin = reader.offset();
  CKPTVERIFY_TRY(auto tree, read_pickle(at_hand_.subspan(reader.position()), begin));
  CKPTVERIFY_TRY_VOID(reader.seek(tree.end() - base_));
  claim(begin, tree.end(), Owner::kUnverifiable, "pickle");
  return tree;
}

Result<PickleItems> TarReading::next_tuple(ByteReader& reader, PickleTree& tree, std::size_t size) {
  CKPTVERIFY_TRY(tree, next_pickle(reader));
  const PickleItems items = tree.root().items();
  if (items.size() != size || !key_of(*items[0])) {
    return fault(tree.root().offset, CauseKind::kBitrot,
                 "a description is no tuple; found " + std::to_string(items.size()) +
                     " items, expected " + std::to_string(size));
  }
  return items;
}

Result<void> TarReading::read_storage(ByteReader& reader) {
  PickleTree tree;
  CKPTVERIFY_TRY(const auto items, next_tuple(reader, tree, 3));
  auto dtype = storage_dtype(items[2]->name());
  if (!dtype) {
    Error error = std::move(dtype).error();
    error.offset = items[2]->offset;
    return error;
  }
  const std::uint64_t begin = reader.offset();
  CKPTVERIFY_TRY(const auto count, reader.u64());
  const DType type = dtype->value_or(DType::kUint8);
  CKPTVERIFY_TRY(const auto size, checked_multiply(count, dtype_size(type)));
  claim(begin, reader.offset(), Owner::kFraming, "count");
  const std::uint64_t offset = reader.offset();
  CKPTVERIFY_TRY_VOID(reader.take(size));
  const std::string key = *key_of(*items[0]);
  claim(offset, reader.offset(), Owner::kTensor, "storage " + key);
  Run run{.file = 0, .offset = offset, .stored_size = size, .size = size};
  if (!storages_.emplace(key, contiguous_tensor(type, {count}, std::move(run))).second) {
    return fault(begin, CauseKind::kLayout, "the storage " + key + " is stored twice");
  }
  return {};
}

/// Storages that are parts of others.
Result<void> TarReading::read_views(ByteReader& reader) {
  CKPTVERIFY_TRY(const auto tree, next_pickle(reader));
  for (const PickleNode* view : tree.root().items()) {
    const PickleItems items = view->items();
    const auto key = items.size() == 4 ? key_of(*items[0]) : std::nullopt;
    const auto root_key = items.size() == 4 ? key_of(*items[1]) : std::nullopt;
    const auto root = root_key ? storages_.find(*root_key) : storages_.end();
    if (!key || root == storages_.end()) {
      return fault(view->offset, CauseKind::kLayout, "a view of a storage that is not there");
    }
    CKPTVERIFY_TRY(const auto first, natural_of(*items[2]));
    CKPTVERIFY_TRY(const auto count, natural_of(*items[3]));
    const auto end = checked_add(first, count);
    if (!end || *end > root->second.shape[0]) {
      return fault(view->offset, CauseKind::kLayout,
                   "a view leaves its storage; found an end of " +
                       std::to_string(end ? *end : UINT64_MAX) + ", expected at most " +
                       std::to_string(root->second.shape[0]));
    }
    const std::uint64_t width = dtype_size(root->second.dtype);
    Run run = root->second.pieces[0].run;
    run.offset += first * width;
    run.size = run.stored_size = count * width;
    storages_.emplace(*key, contiguous_tensor(root->second.dtype, {count}, std::move(run)));
  }
  return {};
}

Result<void> TarReading::expect_end(const ByteReader& reader, std::string_view name) {
  if (reader.at_end()) return {};
  return fault(reader.offset(), CauseKind::kLayout,
               std::string(name) + " has bytes after its last item; found " +
                   std::to_string(reader.remaining()) + ", expected 0");
}

Result<void> TarReading::read_storages() {
  CKPTVERIFY_TRY(const auto bytes, member("storages"));
  ByteReader reader(bytes, base_);
  CKPTVERIFY_TRY(const auto count_tree, next_pickle(reader));
  CKPTVERIFY_TRY(const auto count, natural_of(count_tree.root()));
  for (std::uint64_t i = 0; i < count; ++i) CKPTVERIFY_TRY_VOID(read_storage(reader));
  CKPTVERIFY_TRY_VOID(read_views(reader));
  return expect_end(reader, "storages");
}

Result<std::vector<std::uint64_t>> TarReading::numbers(ByteReader& reader, std::size_t count) {
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t offset = reader.offset();
    CKPTVERIFY_TRY(const auto value, reader.u64());
    if (value > INT64_MAX) {
      return fault(offset, CauseKind::kLayout, "a tensor's size, stride or offset is negative");
    }
    values.push_back(value);
  }
  return values;
}

Result<void> TarReading::read_tensor(ByteReader& reader) {
  PickleTree tree;
  CKPTVERIFY_TRY(const auto items, next_tuple(reader, tree, 3));
  const std::string key = *key_of(*items[0]);
  const auto storage_key = key_of(*items[1]);
  const auto storage = storage_key ? storages_.find(*storage_key) : storages_.end();
  const std::uint64_t begin = reader.offset();
  if (storage == storages_.end()) {
    return fault(items[1]->offset, CauseKind::kLayout,
                 "a tensor's storage is not there; found no " + storage_key.value_or("key"));
  }
  CKPTVERIFY_TRY(const auto rank, reader.i32());
  CKPTVERIFY_TRY_VOID(reader.take(4));
  if (rank < 0 || rank > kRankMax) {
    return fault(begin, CauseKind::kLayout,
                 "a tensor's rank; found " + std::to_string(rank) + ", expected 0 to " +
                     std::to_string(kRankMax));
  }
  CKPTVERIFY_TRY(auto shape, numbers(reader, static_cast<std::size_t>(rank)));
  CKPTVERIFY_TRY(const auto strides, numbers(reader, static_cast<std::size_t>(rank)));
  CKPTVERIFY_TRY(const auto offset, numbers(reader, 1));
  claim(begin, begin + 4, Owner::kFraming, "rank");
  claim(begin + 4, begin + 8, Owner::kUnverifiable, "upper half of the rank");
  claim(begin + 8, reader.offset(), Owner::kMetadata, "shape of tensor " + key);
  Tensor tensor = storage->second;
  Piece& piece = tensor.pieces[0];
  piece.offset.assign(shape.size(), 0);
  piece.shape = shape;
  piece.strides.assign(strides.begin(), strides.end());
  piece.first_element = offset[0];
  tensor.shape = std::move(shape);
  if (auto bounds = check_bounds(tensor); !bounds) {
    return fault(begin, CauseKind::kLayout, bounds.error().message);
  }
  tensors_.emplace(key, std::move(tensor));
  return {};
}

Result<void> TarReading::read_tensors() {
  CKPTVERIFY_TRY(const auto bytes, member("tensors"));
  ByteReader reader(bytes, base_);
  CKPTVERIFY_TRY(const auto count_tree, next_pickle(reader));
  CKPTVERIFY_TRY(const auto count, natural_of(count_tree.root()));
  for (std::uint64_t i = 0; i < count; ++i) CKPTVERIFY_TRY_VOID(read_tensor(reader));
  return expect_end(reader, "tensors");
}

Result<Checkpoint> TarReading::run() {
  checkpoint_.format = "torch-tar";
  checkpoint_.files = {source_};
  CKPTVERIFY_TRY_VOID(read_storages());
  CKPTVERIFY_TRY_VOID(read_tensors());
  if (const auto info = member("sys_info")) {
    ByteReader reader(*info, base_);
    CKPTVERIFY_TRY_VOID(next_pickle(reader));
    CKPTVERIFY_TRY_VOID(expect_end(reader, "sys_info"));
  }
  CKPTVERIFY_TRY(const auto bytes, member("pickle"));
  ByteReader reader(bytes, base_);
  CKPTVERIFY_TRY(const auto tree, next_pickle(reader));
  CKPTVERIFY_TRY_VOID(expect_end(reader, "pickle"));
  TorchContext context;
  context.by_id = [this](const PickleNode& id) -> Result<Tensor> {
    const auto key = key_of(id);
    for (const auto* known : {&tensors_, &storages_}) {
      if (const auto found = key ? known->find(*key) : known->end(); found != known->end()) {
        return found->second;
      }
    }
    return fault(id.offset, CauseKind::kLayout,
                 "a tensor is not in the archive; found no key " + key.value_or("of its own"));
  };
  CKPTVERIFY_TRY(auto objects, read_torch_objects(tree, context));
  checkpoint_.entries = std::move(objects.entries);
  checkpoint_.findings = tar_.findings;
  std::move(objects.findings.begin(), objects.findings.end(),
            std::back_inserter(checkpoint_.findings));
  checkpoint_.uninterpreted = std::move(objects.uninterpreted);
  for (const OwnedRange& range : tar_.framing) checkpoint_.coverage.own(range);
  sort_entries(checkpoint_);
  assign_torch_components(tree.root(), checkpoint_.entries);
  find_aliases(checkpoint_.entries);
  return std::move(checkpoint_);
}

}  // namespace

bool sniff_torch_tar(const Source& source) {
  if (source.is_directory()) return false;
  const auto name = first_tar_name(source.bytes());
  return std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end();
}

Result<Checkpoint> read_torch_tar(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(const auto tar, read_tar(source.bytes()));
  auto checkpoint = TarReading(source, tar).run();
  if (checkpoint) return checkpoint;
  Error error = std::move(checkpoint).error();
  // A member's bytes end before what they announce.
  if (error.kind == ErrorKind::kMalformed && !error.cause) error.cause = Cause{CauseKind::kTrunc};
  return error;
}

}  // namespace ckptverify
