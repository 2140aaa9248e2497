// torchsnapshot.
//
//   .snapshot_metadata       JSON, written last: {"version", "world_size", "manifest":
//                              {"<rank>/<path>": {"type", "location", "byte_range", ...}}}
//   0/..., replicated/..., sharded/..., batched/...    elements in row-major order, little-endian,
//                                                      end to end; or torch.save files
//
// Source: torchsnapshot/manifest.py, serialization.py, flatten.py.
#include "formats/torchsnapshot.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/json.h"
#include "formats/container/assembly.h"
#include "formats/container/dcp_tiling.h"
#include "formats/container/directory_names.h"
#include "formats/encoding/base64.h"

namespace ckptverify {
namespace {

constexpr std::string_view kMetadata = ".snapshot_metadata";
constexpr std::size_t kRankMax = 64;  // dimensions

Error fault(std::string message, CauseKind cause = CauseKind::kBitrot) {
  return Error{.message = std::move(message), .cause = Cause{cause, {}}};
}

const std::string* text_member(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value == nullptr ? nullptr : value->string();
}

bool is_true(const Json& object, std::string_view key) {
  const Json* value = object.find(key);
  return value != nullptr && value->boolean() != nullptr && *value->boolean();
}

Result<std::vector<std::uint64_t>> dimensions(const Json& object, std::string_view key) {
  const Json* list = object.find(key);
  std::vector<std::uint64_t> numbers;
  if (list == nullptr || list->array() == nullptr || list->array()->size() > kRankMax)
    return fault("has no list '" + std::string(key) + "'");
  for (const Json& item : *list->array()) {
    const auto number = item.unsigned_integer();
    if (!number)
      return fault("'" + std::string(key) + "' holds " + item.text() + ", expected an integer");
    numbers.push_back(*number);
  }
  return numbers;
}

/// The keys of a path: "0/model/a%2Fb" is rank 0, "model.a/b".
std::string dotted(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path.substr(i, 3) == "%2F" || path.substr(i, 3) == "%25") {
      out += path[i + 2] == 'F' ? '/' : '%';
      i += 2;
    } else {
      out += path[i] == '/' ? '.' : path[i];
    }
  }
  return out;
}

std::optional<Value> primitive(const std::string& type, const std::string& text) {
  if (type == "str") return Value(text);
  if (type == "bool" && (text == "True" || text == "False")) return Value(text == "True");
  if (type == "int") {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc() && end == text.data() + text.size()) return Value(number);
    return std::nullopt;
  }
  auto bytes = decode_base64(text);
  if (!bytes || (type != "bytes" && type != "float")) return std::nullopt;
  if (type == "bytes") return Value(ByteString{*std::move(bytes)});
  if (bytes->size() != sizeof(double)) return std::nullopt;
  std::uint64_t bits = 0;
  for (std::size_t i = sizeof(double); i-- > 0;)
    bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
  return Value(std::bit_cast<double>(bits));
}

/// A tensor of several boxes, gathered over the ranks' manifests.
struct Sharded {
  std::optional<DType> dtype;
  std::vector<std::uint64_t> shape;
  std::vector<Piece> pieces;
};

class Reader {
 public:
  Reader(const Source& directory, const FormatTable& table)
      : assembly_("torchsnapshot", directory, table) {}
  Result<Checkpoint> read() &&;

 private:
  /// Where an entry stands: under its rank's name if each rank has its own.
  struct Place {
    std::string path;
    std::optional<std::uint32_t> rank = {};
  };
  Place place_of(std::uint32_t rank, const std::string& path, const Json& entry) const;
  Result<Json> read_metadata();
  void add_path(const std::string& path, const Json& entry);
  Result<void> add(std::uint32_t rank, const std::string& path, const Json& entry);
  Result<void> add_shards(const std::string& path, const Json& entry, std::string_view key);
  Result<Run> run_of(const Json& tensor, std::uint64_t size);
  Result<Piece> piece_of(const Json& tensor, DType dtype, std::vector<std::uint64_t> offset,
                         std::vector<std::uint64_t> shape, const std::string& label);
  Result<void> add_tensor(const Place& place, const Json& entry);
  void add_object(const Place& place, const std::string& location);
  void add_entry(const Place& place, Node node);
  void finish_sharded();
  void claim_contradicted();
  /// An error without words where the file is not there, which is noted.
  Result<std::uint32_t> file_of(const std::string& location);

  Assembly assembly_;
  std::uint64_t world_size_ = 1;
  std::map<std::string, std::uint32_t> files_;
  std::map<std::string, Sharded> sharded_;
  std::set<std::string> objects_;
  std::optional<std::uint32_t> last_file_;  // that was asked for
  std::set<std::uint32_t> contradicted_;    // files that the manifest says something wrong of
  std::set<std::string> absent_;            // files, each noted once
  std::set<std::string> parents_;           // containers that hold anything
};

Reader::Place Reader::place_of(std::uint32_t rank, const std::string& path,
                               const Json& entry) const {
  if (world_size_ == 1 || is_true(entry, "replicated")) return {.path = path};
  const std::size_t dot = path.find('.');
  const std::string own = std::to_string(rank);
  if (dot == std::string::npos) return {.path = path + "." + own, .rank = rank};
  return {.path = path.substr(0, dot + 1) + own + path.substr(dot), .rank = rank};
}

void Reader::add_entry(const Place& place, Node node) {
  assembly_.checkpoint().entries.push_back(
      {.path = place.path, .node = std::move(node), .rank = place.rank});
}

Result<std::uint32_t> Reader::file_of(const std::string& location) {
  if (const auto known = files_.find(location); known != files_.end()) return known->second;
  if (!assembly_.directory().has_member(location)) {
    if (absent_.insert(location).second)
      assembly_.fail(CauseKind::kShardMissing, location, "is not there, and tensors lie in it");
    return Error{};
  }
  CKPTVERIFY_TRY(const std::uint32_t number, assembly_.add_file(location));
  files_.emplace(location, number);
  return number;
}

/// The bytes of a tensor: its range of the location, which is all of it where none is given.
Result<Run> Reader::run_of(const Json& tensor, std::uint64_t size) {
  const std::string* location = text_member(tensor, "location");
  if (location == nullptr) return fault("has no location");
  CKPTVERIFY_TRY(const std::uint32_t file, file_of(*location));
  last_file_ = file;
  const std::uint64_t file_size = assembly_.checkpoint().files[file].bytes().size();
  std::uint64_t begin = 0;
  std::uint64_t end = file_size;
  if (const Json* range = tensor.find("byte_range"); range != nullptr && !range->is_null()) {
    CKPTVERIFY_TRY(const auto ends, dimensions(tensor, "byte_range"));
    if (ends.size() != 2 || ends[1] < ends[0])
      return fault("byte_range is none; found " + range->text());
    begin = ends[0];
    end = ends[1];
  }
  if (end > file_size)
    return fault("its bytes leave '" + *location + "'; found a file of " +
                     std::to_string(file_size) + " bytes, expected at least " + std::to_string(end),
                 CauseKind::kTrunc);
  if (end - begin != size)
    return fault("has other bytes than its shape needs; found " + std::to_string(end - begin) +
                     ", expected " + std::to_string(size),
                 end - begin < size ? CauseKind::kTrunc : CauseKind::kLayout);
  return Run{.file = file, .offset = begin, .stored_size = size, .size = size};
}

Result<Piece> Reader::piece_of(const Json& tensor, DType dtype, std::vector<std::uint64_t> offset,
                               std::vector<std::uint64_t> shape, const std::string& label) {
  const std::string* serializer = text_member(tensor, "serializer");
  if (serializer == nullptr || *serializer != "buffer_protocol")
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "is stored by " + (serializer == nullptr ? "nothing" : *serializer)};
  const auto count = checked_product(shape);
  const auto size = count ? checked_multiply(*count, dtype_size(dtype)) : count;
  if (!size) return fault("the size of its shape does not fit 64 bits");
  CKPTVERIFY_TRY(Run run, run_of(tensor, *size));
  assembly_.checkpoint().coverage.own({{run.file, run.offset, *size}, Owner::kTensor, label});
  return Piece{.offset = std::move(offset),
               .shape = shape,
               .strides = contiguous_strides(shape),
               .run = std::move(run)};
}

Result<DType> dtype_of(const Json& entry) {
  constexpr std::string_view kPrefix = "torch.";
  const std::string* name = text_member(entry, "dtype");
  const auto dtype = name != nullptr && name->starts_with(kPrefix)
                         ? dtype_named(std::string_view(*name).substr(kPrefix.size()))
                         : std::nullopt;
  if (!dtype)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "has elements of " + (name == nullptr ? "no type" : "'" + *name + "'")};
  return *dtype;
}

Result<void> Reader::add_tensor(const Place& place, const Json& entry) {
  const std::string* serializer = text_member(entry, "serializer");
  const std::string* location = text_member(entry, "location");
  if (serializer != nullptr && *serializer == "torch_save" && location != nullptr) {
    add_object(place, *location);
    return {};
  }
  CKPTVERIFY_TRY(const DType dtype, dtype_of(entry));
  CKPTVERIFY_TRY(const auto shape, dimensions(entry, "shape"));
  CKPTVERIFY_TRY(Piece piece, piece_of(entry, dtype, std::vector<std::uint64_t>(shape.size(), 0),
                                       shape, place.path));
  Tensor tensor{.dtype = dtype, .shape = shape, .pieces = {}};
  tensor.pieces.push_back(std::move(piece));
  add_entry(place, std::move(tensor));
  return {};
}

/// A file that torch.save wrote; replicas of one may be named by several ranks.
void Reader::add_object(const Place& place, const std::string& location) {
  if (!objects_.insert(location).second) return;
  if (!assembly_.directory().has_member(location)) {
    assembly_.fail(CauseKind::kShardMissing, place.path,
                   "its file '" + location + "' is not there");
    return;
  }
  auto part = assembly_.read(location);
  if (!part) return;
  for (Entry& entry : part->entries) {
    entry.path = place.path + (entry.path.empty() ? "" : "." + entry.path);
    entry.alias_of.clear();
    entry.rank = place.rank;
    entry.component = Component::kOther;
    entry.root_size = 0;
  }
  assembly_.absorb(*std::move(part), {});
}

Result<void> Reader::add_shards(const std::string& path, const Json& entry, std::string_view key) {
  const Json* shards = entry.find(key);
  if (shards == nullptr || shards->array() == nullptr) return fault("has no list of shards");
  Sharded& whole = sharded_[path];
  for (const Json& shard : *shards->array()) {
    const Json* tensor = shard.find("tensor");
    if (tensor == nullptr) return fault("has a shard without a tensor");
    CKPTVERIFY_TRY(const DType dtype, dtype_of(*tensor));
    CKPTVERIFY_TRY(auto offsets, dimensions(shard, "offsets"));
    CKPTVERIFY_TRY(auto sizes, dimensions(shard, "sizes"));
    if (whole.pieces.empty() && whole.shape.empty()) whole.shape.assign(sizes.size(), 0);
    if (offsets.size() != sizes.size() || sizes.size() != whole.shape.size() ||
        whole.dtype.value_or(dtype) != dtype)
      return fault("has shards of different types or dimensions");
    whole.dtype = dtype;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      CKPTVERIFY_TRY(const std::uint64_t end, checked_add(offsets[d], sizes[d]));
      whole.shape[d] = std::max(whole.shape[d], end);
    }
    // Each rank's manifest may name the same shard.
    const auto known = std::any_of(
        whole.pieces.begin(), whole.pieces.end(),
        [&](const Piece& piece) { return piece.offset == offsets && piece.shape == sizes; });
    if (known) continue;
    CKPTVERIFY_TRY(Piece piece,
                   piece_of(*tensor, dtype, std::move(offsets), std::move(sizes), path));
    whole.pieces.push_back(std::move(piece));
  }
  if (const Json* shape = entry.find("shape"); shape != nullptr) {
    CKPTVERIFY_TRY(auto stated, dimensions(entry, "shape"));
    if (stated.size() == whole.shape.size()) whole.shape = std::move(stated);
  }
  return {};
}

void Reader::finish_sharded() {
  for (auto& [path, whole] : sharded_) {
    if (!whole.dtype) continue;
    std::vector<Box> boxes;
    for (const Piece& piece : whole.pieces) boxes.push_back({piece.offset, piece.shape});
    if (const auto wrong = tiling_fault(whole.shape, boxes)) {
      assembly_.fail(wrong->cause, path, wrong->message);
      continue;
    }
    Tensor tensor{.dtype = *whole.dtype, .shape = whole.shape, .pieces = std::move(whole.pieces)};
    add_entry({.path = path}, std::move(tensor));
  }
}

Result<void> Reader::add(std::uint32_t rank, const std::string& path, const Json& entry) {
  const std::string* type = text_member(entry, "type");
  if (type == nullptr) return fault("has no type");
  const Place place = place_of(rank, path, entry);
  if (*type == "Tensor") return add_tensor(place, entry);
  if (*type == "ShardedTensor" || *type == "DTensor") return add_shards(path, entry, "shards");
  if (*type == "ChunkedTensor") return add_shards(place.path, entry, "chunks");
  if (*type == "list" || *type == "dict" || *type == "OrderedDict") {
    const bool is_list = *type == "list";
    if (!parents_.contains(path))
      add_entry(place, is_list ? Value(EmptyList{}) : Value(EmptyMap{}));
    return {};
  }
  if (*type == "object") {
    const std::string* location = text_member(entry, "location");
    if (location == nullptr) return fault("has no location");
    add_object(place, *location);
    return {};
  }
  const std::string* text = text_member(entry, "serialized_value");
  auto value = text == nullptr ? std::nullopt : primitive(*type, *text);
  if (!value)
    return Error{.kind = ErrorKind::kUnsupported, .message = "is of the type '" + *type + "'"};
  add_entry(place, *std::move(value));
  return {};
}

/// The manifest's object, the file claimed.
Result<Json> Reader::read_metadata() {
  const std::string name(kMetadata);
  if (!assembly_.directory().has_member(name))
    return fault("is not there, which is written last; the save did not come to its end",
                 CauseKind::kUncommitted)
        .about(name);
  CKPTVERIFY_TRY(const std::uint32_t file, assembly_.add_file(name));
  const Bytes bytes = assembly_.checkpoint().files[file].bytes();
  assembly_.checkpoint().coverage.own({{file, 0, bytes.size()}, Owner::kUnverifiable, "manifest"});
  auto json = Json::parse(as_text(bytes));
  if (!json && (bytes.empty() || as_text(bytes)[0] != '{'))
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "its manifest is no JSON, as versions before 2023 wrote it",
                 .subject = name};
  if (!json) {
    const bool cut = json.error().offset && *json.error().offset >= bytes.size();
    Error error = std::move(json).error();
    error.cause = Cause{cut ? CauseKind::kTrunc : CauseKind::kBitrot, {}};
    return std::move(error).about(name);
  }
  const Json* manifest = json->find("manifest");
  if (manifest == nullptr || manifest->object() == nullptr)
    return fault("has no manifest").about(name);
  if (const Json* world = json->find("world_size"))
    world_size_ = world->unsigned_integer().value_or(1);
  return *manifest;
}

void Reader::add_path(const std::string& path, const Json& entry) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) return;  // a rank's own dictionary
  std::uint32_t rank = 0;
  const auto [end, problem] = std::from_chars(path.data(), path.data() + slash, rank);
  const bool numbered = problem == std::errc() && end == path.data() + slash;
  last_file_.reset();
  auto added = numbered ? add(rank, dotted(std::string_view(path).substr(slash + 1)), entry)
                        : Result<void>(fault("is of no rank"));
  if (added || added.error().message.empty()) return;
  if (added.error().kind == ErrorKind::kUnsupported)
    assembly_.checkpoint().uninterpreted.push_back("'" + path + "' " + added.error().message);
  else
    assembly_.note(std::move(added).error().about(path));
  if (last_file_) contradicted_.insert(*last_file_);
}

/// What no tensor could be found in, because what is said of it is wrong, is nobody's fault twice.
void Reader::claim_contradicted() {
  Checkpoint& checkpoint = assembly_.checkpoint();
  std::vector<std::uint64_t> sizes;
  for (const Source& file : checkpoint.files) sizes.push_back(file.bytes().size());
  for (const ByteRange& gap : checkpoint.coverage.gaps(sizes))
    if (contradicted_.contains(gap.file))
      checkpoint.coverage.own({gap, Owner::kUnverifiable, "of a tensor that was refused"});
}

Result<Checkpoint> Reader::read() && {
  CKPTVERIFY_TRY(const Json manifest, read_metadata());
  for (const auto& [path, entry] : *manifest.object()) {
    const std::size_t first = path.find('/');
    const std::size_t last = path.rfind('/');
    if (last != first) parents_.insert(dotted(path.substr(first + 1, last - first - 1)));
  }
  for (const auto& [path, entry] : *manifest.object()) add_path(path, entry);
  finish_sharded();
  claim_contradicted();
  assign_components(assembly_.checkpoint().entries);
  return std::move(assembly_).finish();
}

}  // namespace

/// The directories of a snapshot whose description is missing: rank 0's own objects beside those
/// that ranks share. Steps ("0", "100") have no such neighbours.
bool has_snapshot_directories(const Source& source) {
  constexpr std::array<std::string_view, 4> kShared = {"batched", "sharded", "replicated",
                                                       "replicated_batched"};
  return has_directory(source, "0") && top_files(source).empty() &&
         std::any_of(kShared.begin(), kShared.end(),
                     [&](std::string_view name) { return has_directory(source, name); });
}

bool sniff_torchsnapshot(const Source& source) {
  return source.is_directory() &&
         (source.has_member(kMetadata) || has_snapshot_directories(source));
}

Result<Checkpoint> read_torchsnapshot(const Source& source, const FormatTable& table) {
  return Reader(source, table).read();
}

}  // namespace ckptverify
