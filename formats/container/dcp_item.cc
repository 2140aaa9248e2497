// Source: torch/distributed/checkpoint/filesystem.py (_write_item) and _extension.py.
#include "formats/container/dcp_item.h"

#include <memory>
#include <optional>
#include <utility>

#include "formats/container/torch_archive.h"
#include "formats/encoding/zstd.h"

namespace ckptverify {
namespace {

// A planner's own bytes become a value, which is copied.
constexpr std::uint64_t kRawBytesMax = 64ULL << 20;
constexpr std::string_view kLocalHeader = "PK\3\4";
constexpr std::string_view kEndRecord = "PK\5\6";
constexpr std::size_t kEndRecordSize = 22;

bool ends_as_zip(std::string_view text) {
  return text.size() >= kEndRecordSize &&
         text.substr(text.size() - kEndRecordSize).starts_with(kEndRecord);
}

/// "stream.zstd@domain/1" is named "stream.zstd".
std::string_view transform_name(std::string_view descriptor) {
  return descriptor.substr(0, descriptor.find_first_of("@/"));
}

Result<std::vector<std::byte>> decode_item(Bytes stored, std::uint64_t size) {
  CKPTVERIFY_TRY(auto decoded, decode_zstd_stream(stored, size));
  if (decoded.size() != size)
    return Error{.message = "item decodes to another size; found " +
                            std::to_string(decoded.size()) + " bytes, expected " +
                            std::to_string(size),
                 .cause = Cause{CauseKind::kBitrot, {}}};
  return decoded;
}

Result<void> read_archive(const ArchivePlace& place, const std::string& name, Checkpoint& part) {
  CKPTVERIFY_TRY(auto archive, open_torch_archive(place, name));
  CKPTVERIFY_TRY(const auto tree, read_archive_tree(archive));
  return read_archive_into(archive, tree, part);
}

void read_raw(const DcpItemPlace& place, Bytes bytes, Checkpoint& part) {
  if (bytes.size() > kRawBytesMax) {
    part.uninterpreted.push_back(place.name + ": " + std::to_string(bytes.size()) +
                                 " bytes that are no torch.save archive");
    return;
  }
  part.entries.push_back(
      {.path = {}, .node = Value(ByteString{std::vector<std::byte>(bytes.begin(), bytes.end())})});
}

/// Archives inside of a decoded stream: their checksums are proven here, since no run of the file
/// has their bytes.
void check_decoded(const DcpItemPlace& place, Bytes decoded, Checkpoint& part) {
  for (const StoredChecksum& checksum : part.checksums) {
    const auto covered = slice(decoded, checksum.run.offset, checksum.run.stored_size);
    if (covered && checksum.compute(*covered) == checksum.expected) continue;
    part.findings.push_back({.check = "static.checksums",
                             .status = Status::kFail,
                             .cause = Cause{CauseKind::kBitrot, {}},
                             .subject = place.name,
                             .message = place.name + ": the " + std::string(checksum.algorithm) +
                                        " of " + checksum.subject + " is wrong; expected " +
                                        checksum.expected});
  }
  part.checksums.clear();
}

/// A tensor's bytes are decoded again when somebody asks; keeping them would hold the whole
/// checkpoint in memory. What lies oddly in the stream is kept.
void place_decoded(const DcpItemPlace& place, Node& node,
                   const std::shared_ptr<const std::vector<std::byte>>& decoded) {
  if (auto* tensor = std::get_if<Tensor>(&node)) {
    const std::uint64_t element = dtype_size(tensor->dtype);
    for (Piece& piece : tensor->pieces) {
      if (piece.run.owned != nullptr) continue;
      if (piece.run.decode != nullptr || piece.run.offset % element != 0) {
        piece.run.owned = decoded;
        continue;
      }
      piece.first_element += piece.run.offset / element;
      piece.run = {.file = place.file,
                   .offset = place.offset,
                   .stored_size = place.bytes.size(),
                   .size = decoded->size(),
                   .decode = decode_item};
    }
  } else if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    auto copy = std::make_shared<Composite>(**composite);
    for (auto& [name, part] : copy->parts) place_decoded(place, part, decoded);
    node = std::shared_ptr<const Composite>(std::move(copy));
  }
}

Result<void> read_transformed(const DcpItemPlace& place, DcpItem& item) {
  const std::vector<std::string>& transforms = *place.transforms;
  if (transforms.size() != 1 || transform_name(transforms[0]) != "stream.zstd") {
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "item is behind a transform that is not known here; found " +
                            transforms[0] + ", expected stream.zstd",
                 .offset = place.offset};
  }
  auto bytes = decode_zstd_stream(place.bytes, place.size_max);
  if (!bytes) {
    Error error = std::move(bytes).error();
    if (error.offset) *error.offset += place.offset;
    return error;
  }
  const auto decoded = std::make_shared<const std::vector<std::byte>>(*std::move(bytes));
  if (place.kind == DcpItemKind::kObject && !as_text(*decoded).starts_with(kLocalHeader)) {
    item.is_raw = true;
    read_raw(place, *decoded, item.part);
  } else {
    CKPTVERIFY_TRY_VOID(read_archive({.bytes = *decoded}, place.name + " (decoded)", item.part));
    check_decoded(place, *decoded, item.part);
    for (Entry& entry : item.part.entries) place_decoded(place, entry.node, decoded);
  }
  item.part.coverage = {};
  const Owner owner = place.kind == DcpItemKind::kTensor ? Owner::kTensor : Owner::kMetadata;
  item.part.coverage.own({{place.file, place.offset, place.bytes.size()}, owner, place.name});
  return {};
}

Result<void> read_stored(const DcpItemPlace& place, DcpItem& item) {
  const std::string_view text = as_text(place.bytes);
  const bool zip = text.starts_with(kLocalHeader) || ends_as_zip(text);
  if (place.kind == DcpItemKind::kTensor || zip)
    return read_archive({.bytes = place.bytes, .file = place.file, .base = place.offset},
                        place.name, item.part);
  item.is_raw = true;
  read_raw(place, place.bytes, item.part);
  item.part.coverage.own(
      {{place.file, place.offset, place.bytes.size()}, Owner::kMetadata, place.name});
  return {};
}

}  // namespace

DcpItem read_dcp_item(const DcpItemPlace& place) {
  DcpItem item;
  const bool transformed = place.transforms != nullptr && !place.transforms->empty();
  auto read = transformed ? read_transformed(place, item) : read_stored(place, item);
  if (read) return item;
  item.part = {};
  item.part.coverage.own({{place.file, place.offset, place.bytes.size()},
                          Owner::kUnverifiable,
                          "item that its reader refuses"});
  item.refusal = std::move(read).error();
  return item;
}

bool begins_and_ends_as_zip(Bytes bytes) {
  const std::string_view text = as_text(bytes);
  return text.starts_with(kLocalHeader) && ends_as_zip(text);
}

}  // namespace ckptverify
