// Orbax.
//
//   100/                                   a step; `100.orbax-checkpoint-tmp-...` until it is whole
//     _CHECKPOINT_METADATA                 JSON
//     commit_success.txt                   on object stores, in place of the rename
//     default/                             an item, or all of it directly in the step
//       _METADATA                          JSON: tree_metadata {"('a', 'b')": {key_metadata, ...}}
//       array_metadatas/process_0          JSON: param_name, write_shape
//       manifest.ocdbt, d/                 OCDBT: one B-tree of all arrays
//       ocdbt.process_0/                   what each process wrote, before they are merged
//       a.b/.zarray, a.b/0.0               or Zarr: a directory an array
//
// Source: orbax/checkpoint/_src/metadata/tree.py, path/atomicity.py, serialization/.
#include "formats/orbax.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/json.h"
#include "formats/container/assembly.h"
#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

constexpr std::string_view kStepMetadata = "_CHECKPOINT_METADATA";
constexpr std::string_view kTree = "_METADATA";
constexpr std::string_view kManifest = "manifest.ocdbt";
constexpr std::string_view kProcess = "ocdbt.process_";
constexpr std::string_view kTemporary = ".orbax-checkpoint-tmp";
constexpr std::string_view kZarrArray = "/.zarray";

std::string base_name(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', end);
  return path.substr(slash == std::string::npos ? 0 : slash + 1,
                     end == std::string::npos ? 0 : end - slash);
}

/// Whether a member's path begins so; they are sorted.
bool has_prefix(const Source& directory, const std::string& prefix) {
  const auto& members = directory.members();
  const auto first = std::lower_bound(members.begin(), members.end(), prefix);
  return first != members.end() && first->starts_with(prefix);
}

bool is_item(const Source& directory, const std::string& before) {
  return directory.has_member(before + std::string(kTree)) ||
         directory.has_member(before + std::string(kManifest)) ||
         has_prefix(directory, before + std::string(kProcess));
}

/// Where the items are: "" for the directory itself, "default/" and the like.
std::vector<std::string> items_in(const Source& directory) {
  std::vector<std::string> items;
  if (is_item(directory, "")) return {""};
  for (const std::string& name : top_directories(directory))
    if (is_item(directory, name + "/")) items.push_back(name + "/");
  return items;
}

std::string shape_text(const Json* list) {
  std::string text;
  if (list == nullptr || list->array() == nullptr) return {};
  for (const Json& item : *list->array()) text += (text.empty() ? "" : ", ") + item.text();
  return "[" + text + "]";
}

class ItemReader {
 public:
  ItemReader(Assembly& assembly, std::string before)
      : assembly_(assembly), before_(std::move(before)) {}
  void read();

 private:
  std::optional<Json> json(const std::string& name);
  void read_shapes();
  void read_zarr();
  void add_leaf(const std::string& path, const std::string& type);
  void check_merged();

  Assembly& assembly_;
  std::string before_;
  std::map<std::string, std::string> shapes_;  // by the array's own name
  std::set<std::string> leaves_;
};

/// A JSON file of the item; damage is noted.
std::optional<Json> ItemReader::json(const std::string& name) {
  if (!assembly_.directory().has_member(name)) return std::nullopt;
  const auto source = assembly_.directory().member(name);
  if (!source) {
    assembly_.refuse(name, source.error());
    return std::nullopt;
  }
  auto parsed = Json::parse(as_text(source->bytes()));
  if (parsed) {
    assembly_.add_accessory(name);
    return *std::move(parsed);
  }
  Error error = std::move(parsed).error();
  const bool cut = error.offset && *error.offset >= source->bytes().size();
  error.cause = Cause{cut ? CauseKind::kTrunc : CauseKind::kBitrot, {}};
  assembly_.refuse(name, std::move(error));
  return std::nullopt;
}

void ItemReader::read_shapes() {
  const std::string folder = before_ + "array_metadatas/";
  const auto& members = assembly_.directory().members();
  for (const std::string& name : members) {
    if (!name.starts_with(folder)) continue;
    const auto parsed = json(name);
    const Json* list = parsed ? parsed->find("array_metadatas") : nullptr;
    if (list == nullptr || list->array() == nullptr) continue;
    for (const Json& item : *list->array()) {
      const Json* array = item.find("array_metadata");
      const Json* parameter = array == nullptr ? nullptr : array->find("param_name");
      if (parameter != nullptr && parameter->string() != nullptr)
        shapes_[*parameter->string()] = shape_text(array->find("write_shape"));
    }
  }
}

/// A directory an array, whose .zarray says type and shape.
void ItemReader::read_zarr() {
  for (const std::string& name : assembly_.directory().members()) {
    if (!name.starts_with(before_) || !name.ends_with(kZarrArray)) continue;
    const std::string array =
        name.substr(before_.size(), name.size() - before_.size() - kZarrArray.size());
    const auto parsed = json(name);
    if (!parsed) continue;
    const Json* dtype = parsed->find("dtype");
    shapes_[array] = shape_text(parsed->find("shape")) +
                     (dtype != nullptr && dtype->string() != nullptr ? " " + *dtype->string() : "");
    add_leaf(array, "zarr.Array " + shapes_[array]);
  }
}

void ItemReader::add_leaf(const std::string& path, const std::string& type) {
  if (!leaves_.insert(path).second) return;
  std::string full = before_.empty() || before_ == "default/"
                         ? path
                         : before_.substr(0, before_.size() - 1) + "." + path;
  assembly_.checkpoint().entries.push_back({.path = std::move(full), .node = Opaque{type}});
}

/// Every process writes a store of its own; the last step of a save merges them.
void ItemReader::check_merged() {
  const bool unmerged = has_prefix(assembly_.directory(), before_ + std::string(kProcess));
  if (unmerged && !assembly_.directory().has_member(before_ + std::string(kManifest)))
    assembly_.fail(CauseKind::kUncommitted, before_ + std::string(kManifest),
                   "is not there; found the stores of single processes, which the end of a save "
                   "merges");
}

void ItemReader::read() {
  check_merged();
  read_shapes();
  if (const auto tree = json(before_ + std::string(kTree))) {
    const Json* leaves = tree->find("tree_metadata");
    const Json::Object* object = leaves == nullptr ? nullptr : leaves->object();
    for (const auto& [text, leaf] : object == nullptr ? Json::Object{} : *object) {
      std::string path;
      const Json* keys = leaf.find("key_metadata");
      if (keys == nullptr || keys->array() == nullptr) continue;
      for (const Json& key : *keys->array()) {
        const Json* name = key.find("key");
        if (name != nullptr && name->string() != nullptr)
          path += (path.empty() ? "" : ".") + *name->string();
      }
      const Json* value = leaf.find("value_metadata");
      const Json* type = value == nullptr ? nullptr : value->find("value_type");
      std::string shape = value == nullptr ? "" : shape_text(value->find("write_shape"));
      if (const auto known = shapes_.find(path); known != shapes_.end()) shape = known->second;
      const bool named = type != nullptr && type->string() != nullptr;
      add_leaf(path, (named ? *type->string() : "unknown") + (shape.empty() ? "" : " " + shape));
    }
  } else if (!assembly_.directory().has_member(before_ + std::string(kTree))) {
    assembly_.warn(before_ + std::string(kTree), "is not there, which tells the tree");
  }
  read_zarr();
}

/// Everything that is not JSON that was read.
void claim_rest(Assembly& assembly) {
  std::size_t count = 0;
  for (const std::string& name : assembly.directory().members()) {
    if (assembly.is_used(name)) continue;
    assembly.add_accessory(name);
    if (name.find('/') != std::string::npos || name == kManifest) ++count;
  }
  if (count > 0)
    assembly.checkpoint().uninterpreted.push_back(
        assembly.directory().name() + ": the arrays in " + std::to_string(count) +
        " files of OCDBT or Zarr stores are not interpreted");
}

void check_finished(Assembly& assembly) {
  const Source& directory = assembly.directory();
  const auto unfinished = [&](const std::string& name) {
    assembly.fail(CauseKind::kUncommitted, name,
                  "has the name of a save that did not come to its end; it is renamed last");
  };
  if (base_name(directory.name()).find(kTemporary) != std::string::npos)
    unfinished(base_name(directory.name()));
  for (const std::string& name : top_directories(directory))
    if (name.find(kTemporary) != std::string::npos) unfinished(name);
}

}  // namespace

bool sniff_orbax(const Source& source) {
  if (!source.is_directory()) return false;
  return source.has_member(kStepMetadata) || !items_in(source).empty();
}

Result<Checkpoint> read_orbax(const Source& source, const FormatTable& table) {
  Assembly assembly("orbax", source, table);
  check_finished(assembly);
  if (source.has_member(kStepMetadata)) {
    const auto part = source.member(kStepMetadata);
    const auto parsed = part ? Json::parse(as_text(part->bytes())) : Result<Json>(part.error());
    if (parsed)
      assembly.add_accessory(std::string(kStepMetadata));
    else
      assembly.refuse(std::string(kStepMetadata), parsed.error());
  }
  for (const std::string& item : items_in(source)) ItemReader(assembly, item).read();
  claim_rest(assembly);
  assign_components(assembly.checkpoint().entries);
  return std::move(assembly).finish();
}

}  // namespace ckptverify
