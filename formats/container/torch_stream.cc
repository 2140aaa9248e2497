// Source: torch/serialization.py (_legacy_save, _legacy_load), torch/csrc/serialization.cpp.
#include "formats/container/torch_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace ckptverify {
namespace {

constexpr std::string_view kMagic = "119547037146038801333356";
constexpr std::int64_t kProtocol = 1001;
// The magic number as text, and as much again: no pickled integer is longer.
constexpr std::size_t kMagicBytesMax = 64;

Error fault(std::uint64_t offset, CauseKind cause, std::string message) {
  return {.message = std::move(message), .offset = offset, .cause = Cause{cause}};
}

std::optional<std::string> text_of(const PickleNode& node) {
  if (const auto text = node.string()) return std::string(*text);
  if (const auto bytes = node.bytes()) return std::string(as_text(*bytes));
  return std::nullopt;
}

class Opening {
 public:
  explicit Opening(TorchStream& stream) : stream_(stream) {}
  Result<void> run();

 private:
  Result<PickleTree> next_pickle(std::string_view what);
  Result<void> read_head();
  void check_system(const PickleNode& system);
  Result<void> find_references();
  Result<void> read_storages(const PickleNode& keys);
  Result<void> read_storage(const std::string& key);
  void note(Status status, CauseKind cause, std::uint64_t offset, const std::string& message);

  std::uint64_t end() const { return stream_.place.base + stream_.place.bytes.size(); }
  Result<Bytes> take(std::uint64_t size) {
    CKPTVERIFY_TRY(const auto bytes, slice(stream_.place.bytes, at_ - stream_.place.base, size));
    at_ += size;
    return bytes;
  }

  TorchStream& stream_;
  std::uint64_t at_ = 0;  // absolute
};

void Opening::note(Status status, CauseKind cause, std::uint64_t offset,
                   const std::string& message) {
  Finding finding{.check = "static.container",
                  .status = status,
                  .subject = stream_.name,
                  .message = "byte " + std::to_string(offset) + ": " + message,
                  .evidence = {{"offset", std::to_string(offset)}}};
  if (status == Status::kFail) finding.cause = Cause{cause};
  stream_.findings.push_back(std::move(finding));
}

Result<PickleTree> Opening::next_pickle(std::string_view what) {
  const Bytes rest = stream_.place.bytes.subspan(at_ - stream_.place.base);
  auto tree = read_pickle(rest, at_);
  if (!tree) {
    Error error = std::move(tree).error();
    error.message = "the pickle of " + std::string(what) + ": " + error.message;
    return error;
  }
  // No checksum, and much that means nothing: numbers of the memo, locations, hooks.
  stream_.claims.push_back({{stream_.place.file, at_, tree->end() - at_},
                            Owner::kUnverifiable,
                            "pickle of " + std::string(what)});
  at_ = tree->end();
  return tree;
}

void Opening::check_system(const PickleNode& system) {
  std::optional<bool> little;
  std::optional<std::int64_t> version;
  for (const auto& [key, value] : system.pairs()) {
    if (text_of(*key) == "little_endian") little = value->boolean();
    if (text_of(*key) == "protocol_version") version = value->integer();
  }
  if (!little || version != kProtocol) {
    note(Status::kFail, CauseKind::kBitrot, system.offset,
         "the description of the system that wrote the stream is damaged");
  } else if (!*little) {
    note(Status::kWarn, CauseKind::kLayout, system.offset,
         "written by a big-endian machine; its elements are little-endian all the same");
  }
}

Result<void> Opening::read_head() {
  CKPTVERIFY_TRY(const auto magic, next_pickle("the magic number"));
  if (value_text(magic.root().value()) != kMagic) {
    return fault(stream_.place.base, CauseKind::kBitrot, "no magic number of torch.save");
  }
  CKPTVERIFY_TRY(const auto protocol, next_pickle("the protocol's version"));
  if (protocol.root().integer() != kProtocol) {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "an unknown protocol of torch.save; found " +
                            value_text(protocol.root().value()) + ", expected " +
                            std::to_string(kProtocol),
                 .offset = protocol.root().offset};
  }
  CKPTVERIFY_TRY(const auto system, next_pickle("the system"));
  check_system(system.root());
  return {};
}

/// What the object says of its storages.
Result<void> Opening::find_references() {
  for (const PickleNode& node : stream_.tree.nodes()) {
    if (!is_storage(node)) continue;
    CKPTVERIFY_TRY(const auto reference, storage_reference(node));
    const auto [known, added] = stream_.storages.emplace(
        reference.key,
        TorchStream::Storage{
            .count = reference.element_count, .size = reference.size, .reference = node.offset});
    if (!added && known->second.size != reference.size) {
      return fault(node.offset, CauseKind::kLayout,
                   "a storage has two sizes; found " + std::to_string(reference.size) +
                       " bytes, expected " + std::to_string(known->second.size));
    }
  }
  return {};
}

Result<void> Opening::read_storage(const std::string& key) {
  const auto known = stream_.storages.find(key);
  if (known == stream_.storages.end()) {
    return fault(at_, CauseKind::kLayout, "no tensor refers to the storage " + key);
  }
  TorchStream::Storage& storage = known->second;
  if (storage.stored) {
    return fault(at_, CauseKind::kLayout, "the storage " + key + " is stored twice");
  }
  const std::uint64_t count_offset = at_;
  const auto count_bytes = take(sizeof(std::uint64_t));
  if (!count_bytes) {
    return fault(end(), CauseKind::kTrunc,
                 "the file ends before the storage " + key + "; found " +
                     std::to_string(end() - at_) + " bytes, expected " +
                     std::to_string(sizeof(std::uint64_t) + storage.size));
  }
  ByteReader reader(*count_bytes, count_offset);
  CKPTVERIFY_TRY(const auto count, reader.u64());
  if (count != storage.count) {
    return fault(count_offset, CauseKind::kLayout,
                 "the storage " + key + " has another size than its tensors say; found " +
                     std::to_string(count) + " elements, expected " +
                     std::to_string(storage.count));
  }
  stream_.claims.push_back(
      {{stream_.place.file, count_offset, sizeof(std::uint64_t)}, Owner::kFraming, "count"});
  storage.offset = at_;
  if (!take(storage.size)) {
    return fault(end(), CauseKind::kTrunc,
                 "the file ends inside of the storage " + key + "; found " +
                     std::to_string(end() - at_) + " bytes, expected " +
                     std::to_string(storage.size));
  }
  storage.stored = true;
  stream_.claims.push_back(
      {{stream_.place.file, storage.offset, storage.size}, Owner::kTensor, "storage " + key});
  return {};
}

Result<void> Opening::read_storages(const PickleNode& keys) {
  if (keys.kind != PickleKind::kList) {
    return fault(keys.offset, CauseKind::kBitrot, "the storages' keys are no list");
  }
  for (const PickleNode* node : keys.items()) {
    const auto key = text_of(*node);
    if (!key) return fault(node->offset, CauseKind::kBitrot, "a storage's key is no string");
    CKPTVERIFY_TRY_VOID(read_storage(*key));
  }
  for (const auto& [key, storage] : stream_.storages) {
    if (storage.stored) continue;
    return fault(storage.reference, CauseKind::kLayout,
                 "a storage is not in the file; found no key " + key + " among " +
                     std::to_string(keys.items().size()) + ", expected " +
                     std::to_string(storage.size) + " bytes");
  }
  return {};
}

Result<void> Opening::run() {
  at_ = stream_.place.base;
  CKPTVERIFY_TRY_VOID(read_head());
  CKPTVERIFY_TRY(stream_.tree, next_pickle("the object"));
  CKPTVERIFY_TRY(const auto keys, next_pickle("the storages' keys"));
  CKPTVERIFY_TRY_VOID(find_references());
  CKPTVERIFY_TRY_VOID(read_storages(keys.root()));
  if (at_ != end()) {
    note(Status::kFail, CauseKind::kLayout, at_,
         "bytes after the last storage; found " + std::to_string(end() - at_) + ", expected 0");
  }
  return {};
}

}  // namespace

bool is_torch_stream(Bytes bytes) {
  const auto magic = read_pickle(bytes.first(std::min(bytes.size(), kMagicBytesMax)));
  return magic && magic->root().kind == PickleKind::kBigInteger &&
         value_text(magic->root().value()) == kMagic;
}

Result<TorchStream> open_torch_stream(const ArchivePlace& place, std::string name) {
  TorchStream stream;
  stream.place = place;
  stream.name = std::move(name);
  CKPTVERIFY_TRY_VOID(Opening(stream).run());
  return stream;
}

TorchContext stream_context(const TorchStream& stream) {
  const auto find = [&stream](const StorageReference& reference) -> Result<Run> {
    const auto& storage = stream.storages.at(reference.key);  // every reference was found
    Run run{.file = stream.place.file,
            .offset = storage.offset,
            .stored_size = storage.size,
            .size = storage.size};
    if (reference.view) {
      // Within the storage, as storage_reference() has proven.
      const std::uint64_t width = storage.count == 0 ? 0 : storage.size / storage.count;
      run.offset += reference.view->first_element * width;
      run.size = run.stored_size = reference.view->element_count * width;
    }
    return run;
  };
  return {.find = find};
}

}  // namespace ckptverify
