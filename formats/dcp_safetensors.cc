// Hugging Face storage of PyTorch distributed checkpoints, not consolidated.
//
//   shard-00001-model-00001-of-00002.safetensors   rank 0's chunks of the tensors of file 1 of 2
//   shard-00002-model-00001-of-00002.safetensors   rank 1's
//
//   __metadata__: {"DCP_SHARDING_INFO": "{\"name\": {\"saved_offsets\": [8, 0]}}", ...}
//
// A tensor's size is written nowhere: it ends where its last chunk does. Source:
// torch/distributed/checkpoint/hf_storage.py and _hf_utils.py.
#include "formats/dcp_safetensors.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/json.h"
#include "formats/container/assembly.h"
#include "formats/container/dcp_names.h"
#include "formats/container/dcp_tiling.h"
#include "formats/container/safetensors_header.h"

namespace ckptverify {
namespace {

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";
constexpr std::string_view kSavedOffsets = "saved_offsets";

/// "shard-<shard>-model-<file>-of-<count>.safetensors", or without the shard.
struct ShardName {
  std::uint32_t shard = 0;  // from 1; 0: none
  std::uint32_t file = 0;
  std::uint32_t count = 0;
};

std::optional<std::uint32_t> number_before(std::string_view& text, std::string_view end) {
  const std::size_t place = text.find(end);
  if (place == std::string_view::npos || place == 0) return std::nullopt;
  std::uint32_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + place, number);
  if (failure != std::errc() || stop != text.data() + place) return std::nullopt;
  text.remove_prefix(place + end.size());
  return number;
}

std::optional<ShardName> shard_name(std::string_view member) {
  ShardName name;
  if (member.starts_with("shard-")) {
    member.remove_prefix(6);
    const auto shard = number_before(member, "-");
    if (!shard || *shard == 0) return std::nullopt;
    name.shard = *shard;
  }
  if (!member.starts_with("model-")) return std::nullopt;
  member.remove_prefix(6);
  const auto file = number_before(member, "-of-");
  const auto count = number_before(member, kSuffix);
  if (!file || !count || !member.empty()) return std::nullopt;
  name.file = *file;
  name.count = *count;
  return name;
}

bool is_shard(std::string_view member) {
  return member.find('/') == std::string_view::npos && member.ends_with(kSuffix);
}

const std::string* sharding_info(const SafetensorsHeader& header) {
  for (const auto& [key, value] : header.metadata)
    if (key == kShardingInfo) return &value;
  return nullptr;
}

/// One tensor's part in one file.
struct Part {
  std::uint32_t file = 0;
  const SafetensorsTensor* tensor = nullptr;
  std::vector<std::uint64_t> offsets;
};

class ShardReading {
 public:
  explicit ShardReading(Assembly& assembly) : assembly_(assembly) {}
  void add_file(const std::string& member);
  void check_names(const std::vector<std::string>& members);
  void add_tensors();

 private:
  void add_part(const std::string& member, std::uint32_t file, const SafetensorsTensor& tensor,
                const Json* info);
  void add_tensor(const std::string& name, const std::vector<Part>& parts);

  Assembly& assembly_;
  std::vector<std::unique_ptr<SafetensorsHeader>> headers_;
  std::map<std::string, std::vector<Part>> parts_;
  std::vector<Entry> entries_;
};

void ShardReading::add_part(const std::string& member, std::uint32_t file,
                            const SafetensorsTensor& tensor, const Json* info) {
  assembly_.checkpoint().coverage.own(
      {{file, tensor.begin, tensor.end - tensor.begin}, Owner::kTensor, tensor.name});
  Part part{.file = file, .tensor = &tensor, .offsets = {}};
  part.offsets.resize(tensor.shape.size(), 0);
  const auto wrong = [&](const std::string& what) {
    assembly_.fail(CauseKind::kStStruct, tensor.name, what, {{"file", member}});
  };
  if (info != nullptr) {
    const Json* of_tensor = info->find(tensor.name);
    const Json* offsets = of_tensor == nullptr ? nullptr : of_tensor->find(kSavedOffsets);
    if (offsets == nullptr || offsets->array() == nullptr)
      return wrong("has no saved_offsets in " + member);
    if (offsets->array()->size() != tensor.shape.size())
      return wrong("has saved_offsets of other dimensions; found " +
                   std::to_string(offsets->array()->size()) + ", expected " +
                   std::to_string(tensor.shape.size()));
    for (std::size_t d = 0; d < part.offsets.size(); ++d) {
      const auto offset = (*offsets->array())[d].unsigned_integer();
      if (!offset || !checked_add(*offset, tensor.shape[d]))
        return wrong("has a saved_offset that is no natural number");
      part.offsets[d] = *offset;
    }
  }
  parts_[tensor.name].push_back(std::move(part));
}

void ShardReading::add_file(const std::string& member) {
  const auto file = assembly_.add_file(member);
  if (!file) return assembly_.note(Error(file.error()).about(member));
  const Bytes bytes = assembly_.checkpoint().files[*file].bytes();
  Coverage& coverage = assembly_.checkpoint().coverage;
  auto header = read_safetensors_header(bytes);
  if (!header) {
    coverage.own({{*file, 0, bytes.size()}, Owner::kUnverifiable, "refused by its reader"});
    return assembly_.note(std::move(header).error().about(member));
  }
  headers_.push_back(std::make_unique<SafetensorsHeader>(*std::move(header)));
  const SafetensorsHeader& known = *headers_.back();
  own_safetensors_header(known, *file, coverage);
  std::optional<Json> info;
  if (const std::string* text = sharding_info(known)) {
    auto parsed = Json::parse(*text);
    if (parsed && parsed->object() != nullptr)
      info = *std::move(parsed);
    else
      assembly_.fail(CauseKind::kStStruct, member, "DCP_SHARDING_INFO is no JSON object");
  }
  for (const SafetensorsTensor& tensor : known.tensors)
    add_part(member, *file, tensor, info ? &*info : nullptr);
}

/// The names say how many files each shard's tensors are spread over, never how many shards.
void ShardReading::check_names(const std::vector<std::string>& members) {
  std::set<std::uint32_t> counts;
  std::set<std::uint32_t> files;
  std::set<std::uint32_t> shards;
  for (const std::string& member : members) {
    const auto name = shard_name(member);
    if (!name) continue;
    counts.insert(name->count);
    files.insert(name->file);
    if (name->shard != 0) shards.insert(name->shard);
  }
  const std::string& directory = assembly_.directory().name();
  if (counts.size() > 1)
    assembly_.fail(CauseKind::kLayout, directory,
                   "files of several saves; found " + std::to_string(*counts.begin()) + " and " +
                       std::to_string(*counts.rbegin()) + " as their count, expected one");
  if (counts.size() == 1 && files.size() < *counts.begin())
    assembly_.fail(CauseKind::kShardMissing, directory,
                   "files are missing; found " + std::to_string(files.size()) + " of " +
                       std::to_string(*counts.begin()));
  if (!shards.empty() && shards.size() < *shards.rbegin())
    assembly_.warn(directory,
                   "shards are not numbered in one row, as if one were missing or empty; "
                   "found " +
                       std::to_string(shards.size()) + " up to number " +
                       std::to_string(*shards.rbegin()));
  if (!shards.empty())
    assembly_.warn(directory,
                   "no file says how many shards there are: that none is missing after number " +
                       std::to_string(*shards.rbegin()) + " cannot be seen");
}

void ShardReading::add_tensor(const std::string& name, const std::vector<Part>& parts) {
  const SafetensorsTensor& first = *parts[0].tensor;
  std::vector<std::uint64_t> shape(first.shape.size(), 0);
  std::vector<Box> boxes;
  for (const Part& part : parts) {
    if (part.tensor->type.name != first.type.name || part.offsets.size() != shape.size())
      return assembly_.fail(CauseKind::kLayout, name,
                            "has another dtype or other dimensions in another file; found " +
                                std::string(part.tensor->type.name) + ", expected " +
                                std::string(first.type.name));
    for (std::size_t d = 0; d < shape.size(); ++d)
      shape[d] = std::max(shape[d], part.offsets[d] + part.tensor->shape[d]);
    boxes.push_back({part.offsets, part.tensor->shape});
  }
  if (const auto fault = tiling_fault(shape, boxes)) {
    if (!fault->undecided) return assembly_.fail(fault->cause, name, fault->message);
    return assembly_.checkpoint().uninterpreted.push_back(name + ": " + fault->message);
  }
  std::optional<Tensor> whole;
  for (const Part& part : parts) {
    auto tensor = safetensors_tensor(*part.tensor, part.file);
    // A packed type counts pairs in its last dimension; chunks of it are not put together here.
    if (!tensor || (tensor->shape != part.tensor->shape && parts.size() > 1))
      return assembly_.checkpoint().uninterpreted.push_back(
          name + ": PyTorch has no " + std::string(first.type.name) + " tensor of these chunks");
    for (std::size_t d = 0; d < shape.size(); ++d) tensor->pieces[0].offset[d] = part.offsets[d];
    if (!whole) {
      whole = *std::move(tensor);
      if (parts.size() > 1) whole->shape = shape;
    } else {
      whole->pieces.push_back(std::move(tensor->pieces[0]));
    }
  }
  entries_.push_back({.path = name, .node = *std::move(whole)});
}

void ShardReading::add_tensors() {
  for (const auto& [name, parts] : parts_) add_tensor(name, parts);
  std::vector<DcpKeys> keys;
  for (const Entry& entry : entries_) keys.push_back({entry.path});
  std::vector<const DcpKeys*> pointers;
  for (const DcpKeys& of_one : keys) pointers.push_back(&of_one);
  assign_dcp_components(entries_, pointers);
  for (Entry& entry : entries_) assembly_.checkpoint().entries.push_back(std::move(entry));
}

}  // namespace

bool sniff_dcp_safetensors(const Source& source) {
  if (!source.is_directory() || source.has_member(kIndex)) return false;
  for (const std::string& member : source.members()) {
    if (!is_shard(member)) continue;
    const auto name = shard_name(member);
    if (name && name->shard != 0) return true;
    // Another name: its header tells.
    const auto file = source.member(member);
    if (!file || !begins_as_safetensors(file->bytes())) return false;
    const auto header = read_safetensors_header(file->bytes());
    return header && sharding_info(*header) != nullptr;
  }
  return false;
}

Result<Checkpoint> read_dcp_safetensors(const Source& source, const FormatTable& table) {
  Assembly assembly("dcp-safetensors", source, table);
  ShardReading reading(assembly);
  std::vector<std::string> members;
  for (const std::string& member : source.members())
    if (is_shard(member)) members.push_back(member);
  for (const std::string& member : members) reading.add_file(member);
  reading.check_names(members);
  reading.add_tensors();
  return std::move(assembly).finish();
}

}  // namespace ckptverify
