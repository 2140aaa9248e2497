// The index is believed in nothing that the shards do not say themselves.
#include "formats/container/shard_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ckptverify/json.h"
#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

// A message quotes no more of a file than a person reads.
constexpr std::size_t kQuotedMax = 80;
// Findings on single tensors and shards: an index of another model contradicts all of them.
constexpr std::size_t kNamedMax = 8;

Error wrong(std::string message) {
  return Error{.message = std::move(message), .cause = Cause{CauseKind::kStStruct, {}}};
}

std::string found_text(const Json* found) {
  return "; found " + (found == nullptr ? "nothing" : found->text().substr(0, kQuotedMax));
}

/// A name in the same directory, and nothing else.
bool is_plain_name(std::string_view name) {
  constexpr std::string_view kNever("/\\\0", 3);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kNever) == std::string_view::npos;
}

std::uint64_t stored_size(const Entry& entry) {
  const auto* tensor = std::get_if<Tensor>(&entry.node);
  return tensor == nullptr || !entry.alias_of.empty() ? 0 : logical_size(*tensor);
}

using FilesOfTensor = std::map<std::string, std::vector<std::string>>;

/// One index and its shards, read once and then compared.
class Shards {
 public:
  Shards(Assembly& assembly, std::string index_name, ShardIndex index);

  void read();
  void check_names(const ShardNames& names);
  void check_tensors();
  void check_total_size();
  void absorb(const Role& role);

 private:
  void lost(const std::string& file);
  const std::string& owner(const std::string& tensor) const;
  void contradiction(const std::string& tensor, const std::string& message) {
    if (++contradictions_ <= kNamedMax)
      assembly_.fail(CauseKind::kStStruct, tensor, message, {{"index", index_name_}});
  }

  Assembly& assembly_;
  std::string index_name_;
  ShardIndex index_;
  std::map<std::string, std::vector<std::string>> tensors_of_;  // by file, as the index says
  std::vector<std::pair<std::string, Checkpoint>> parts_;       // by file, as they are
  FilesOfTensor seen_in_;
  std::size_t contradictions_ = 0;
  std::size_t lost_ = 0;
};

Shards::Shards(Assembly& assembly, std::string index_name, ShardIndex index)
    : assembly_(assembly), index_name_(std::move(index_name)), index_(std::move(index)) {
  for (const auto& [tensor, file] : index_.file_of) tensors_of_[file].push_back(tensor);
}

/// What the loss of a shard costs: the index knows.
void Shards::lost(const std::string& file) {
  const std::vector<std::string>& tensors = tensors_of_.at(file);
  const auto& refused = assembly_.directory().refused();
  // A link that leaves the directory is named once, as such.
  if (std::binary_search(refused.begin(), refused.end(), file) || ++lost_ > kNamedMax) return;
  assembly_.fail(CauseKind::kShardMissing, file,
                 "shard is missing; found no file, expected one with " +
                     std::to_string(tensors.size()) + " tensors",
                 {{"first of them", tensors.front()}, {"index", index_name_}});
}

void Shards::read() {
  std::vector<std::string> files;
  for (const auto& [file, tensors] : tensors_of_) files.push_back(file);
  std::sort(files.begin(), files.end(), natural_less);
  for (const std::string& file : files) {
    if (!assembly_.directory().has_member(file)) {
      lost(file);
      continue;
    }
    auto part = assembly_.read(file);
    if (!part) continue;  // its refusal has been noted
    for (const Entry& entry : part->entries) seen_in_[entry.path].push_back(file);
    parts_.emplace_back(file, *std::move(part));
  }
}

/// Every shard of the N that the names speak of is listed; others are from another save.
void Shards::check_names(const ShardNames& names) {
  std::optional<std::uint64_t> count;
  std::vector<std::uint64_t> listed;
  for (const auto& [file, tensors] : tensors_of_) {
    const auto number = shard_number(file, names.stem + "-", names.suffix);
    if (!number) continue;
    listed.push_back(number->index);
    if (count && *count != number->count)
      assembly_.warn(file, "is one of " + std::to_string(number->count) +
                               " shards; the index also lists one of " + std::to_string(*count));
    count = count.value_or(number->count);
  }
  for (const std::string& file : top_files(assembly_.directory())) {
    const auto number = shard_number(file, names.stem + "-", names.suffix);
    if (!number || tensors_of_.contains(file)) continue;
    assembly_.add_accessory(file);
    if (count == number->count) {
      listed.push_back(number->index);
      assembly_.fail(CauseKind::kStStruct, file,
                     "shard is not in the index; found it, expected none of that name",
                     {{"index", index_name_}});
    } else {
      assembly_.warn(file, "stale shard of another save; found one of " +
                               std::to_string(number->count) + ", expected " +
                               (count ? "one of " + std::to_string(*count) : "none"));
    }
  }
  if (!count) return;
  std::sort(listed.begin(), listed.end());
  if (const Holes holes = holes_in(listed, 1, *count + 1); holes.count > 0)
    assembly_.fail(CauseKind::kShardMissing, index_name_,
                   "shards are missing from the index and from the directory; found " +
                       std::to_string(*count - holes.count) + ", expected " +
                       std::to_string(*count),
                   {{"first missing", std::to_string(holes.first)}});
}

/// Where the tensor counts: in the shard of the index if it is there.
const std::string& Shards::owner(const std::string& tensor) const {
  const std::vector<std::string>& files = seen_in_.at(tensor);
  const auto listed = index_.file_of.find(tensor);
  if (listed == index_.file_of.end()) return files.front();
  const auto place = std::find(files.begin(), files.end(), listed->second);
  return place == files.end() ? files.front() : *place;
}

void Shards::check_tensors() {
  for (const auto& [tensor, files] : seen_in_) {
    const auto listed = index_.file_of.find(tensor);
    if (files.size() > 1)
      contradiction(tensor, "is stored twice; found it in " + files[0] + " and in " + files[1] +
                                ", expected it once");
    else if (listed == index_.file_of.end())
      contradiction(tensor, "is not in the index; found it in " + files[0]);
    else if (listed->second != files[0])
      contradiction(tensor, "lies in another shard than the index says; found " + files[0] +
                                ", expected " + listed->second);
  }
  for (const auto& [file, part] : parts_) {
    for (const std::string& tensor : tensors_of_.at(file))
      if (!seen_in_.contains(tensor))
        contradiction(tensor, "is not in its shard; found nothing, expected it in " + file);
  }
  if (contradictions_ > kNamedMax)
    assembly_.fail(
        CauseKind::kStStruct, index_name_,
        "more tensors contradict the index; found " + std::to_string(contradictions_) + " in all");
  if (lost_ > kNamedMax)
    assembly_.fail(CauseKind::kShardMissing, index_name_,
                   "more shards are missing; found " + std::to_string(lost_) + " in all");
}

/// The sum may be older than a change that shares tensors, and a float: nothing depends on it.
void Shards::check_total_size() {
  if (!index_.total_size || parts_.size() != tensors_of_.size()) return;
  std::uint64_t bytes = 0;
  for (const auto& [file, part] : parts_)
    for (const Entry& entry : part.entries) bytes += stored_size(entry);
  if (*index_.total_size == static_cast<double>(bytes)) return;
  assembly_.warn(index_name_, "total_size is not the sum of the tensors; found " +
                                  Json(*index_.total_size).text() + " bytes, expected " +
                                  std::to_string(bytes));
}

void Shards::absorb(const Role& role) {
  for (auto& [file, part] : parts_) {
    std::erase_if(part.entries,
                  [&, &name = file](const Entry& entry) { return owner(entry.path) != name; });
    assembly_.absorb(std::move(part), role);
  }
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text) {
  auto json = Json::parse(text);
  if (!json) {
    Error error = std::move(json).error();
    error.message = "index is no strict JSON: " + error.message;
    error.cause = Cause{error.offset == text.size() ? CauseKind::kTrunc : CauseKind::kStStruct, {}};
    return error;
  }
  const Json* map = json->find("weight_map");
  if (map == nullptr || map->object() == nullptr)
    return wrong("no weight_map" + found_text(map) + ", expected an object");
  ShardIndex index;
  for (const auto& [tensor, file] : *map->object()) {
    if (file.string() == nullptr || !is_plain_name(*file.string()))
      return wrong("weight_map '" + tensor.substr(0, kQuotedMax) + "' is no plain file name" +
                   found_text(&file) + ", expected a name in the same directory");
    index.file_of.emplace(tensor, *file.string());
  }
  if (const Json* metadata = json->find("metadata"))
    if (const Json* size = metadata->find("total_size")) index.total_size = size->number();
  return index;
}

void add_indexed_shards(Assembly& assembly, const std::string& index_name, const ShardNames& names,
                        const Role& role) {
  const auto file = assembly.add_file(index_name);
  if (!file) return assembly.refuse(index_name, file.error());
  const Bytes bytes = assembly.checkpoint().files[*file].bytes();
  auto index = parse_shard_index(as_text(bytes));
  assembly.checkpoint().coverage.own({{*file, 0, bytes.size()}, Owner::kMetadata, "index"});
  if (!index) {
    assembly.note(std::move(index).error().about(index_name));
    return;
  }
  Shards shards(assembly, index_name, *std::move(index));
  shards.read();
  shards.check_names(names);
  shards.check_tensors();
  shards.check_total_size();
  shards.absorb(role);
}

void add_unindexed_shards(Assembly& assembly, const ShardNames& names, const Role& role) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> sets;  // by the count that the names state
  for (const std::string& file : top_files(assembly.directory())) {
    const auto number = shard_number(file, names.stem + "-", names.suffix);
    if (!number) continue;
    sets[number->count].push_back(number->index);
    assembly.add(file, role);
  }
  for (auto& [count, listed] : sets) {
    std::sort(listed.begin(), listed.end());
    const std::string set = names.stem + "-*-of-" + std::to_string(count) + names.suffix;
    assembly.fail(CauseKind::kUncommitted, set,
                  "shards without an index; found " + std::to_string(listed.size()) +
                      " shards, expected an index that is written after them");
    if (const Holes holes = holes_in(listed, 1, count + 1); holes.count > 0)
      assembly.fail(CauseKind::kShardMissing, set,
                    "shards are missing; found " + std::to_string(count - holes.count) +
                        ", expected " + std::to_string(count),
                    {{"first missing", std::to_string(holes.first)}});
  }
}

}  // namespace ckptverify
