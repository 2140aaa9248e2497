// Every key known, every value of its type, every reference to something that is there.
#include "formats/sharded_index.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>

#include "ckptverify/fingerprint.h"
#include "ckptverify/json.h"

namespace ckptverify {
namespace {

constexpr std::string_view kSchemaFamily = "ckptverify.sharded/";
constexpr std::string_view kSchema = "ckptverify.sharded/1";
constexpr std::array<std::string_view, 3> kFormats = {"hdf5", "safetensors", "torch"};

Error structural(const std::string& where, const std::string& what, const Json* found,
                 const std::string& expected) {
  return Error{.message = where + ": " + what + "; found " + (found ? found->text() : "nothing") +
                          ", expected " + expected,
               .cause = Cause{CauseKind::kStStruct, {}}};
}

Result<const Json::Object*> object_at(const Json& parent, const std::string& where,
                                      std::string_view key) {
  const Json* child = parent.find(key);
  if (child == nullptr || child->object() == nullptr)
    return structural(where + std::string(key), "no object", child, "an object");
  return child->object();
}

Result<std::string> string_at(const Json& parent, const std::string& where, std::string_view key) {
  const Json* child = parent.find(key);
  if (child == nullptr || child->string() == nullptr)
    return structural(where + std::string(key), "no string", child, "a string");
  return *child->string();
}

Result<std::uint64_t> unsigned_at(const Json& parent, const std::string& where,
                                  std::string_view key) {
  const Json* child = parent.find(key);
  const auto number = child == nullptr ? std::nullopt : child->unsigned_integer();
  if (!number)
    return structural(where + std::string(key), "no unsigned integer", child,
                      "an unsigned integer");
  return *number;
}

Result<void> check_keys(const Json& object, const std::string& where,
                        std::initializer_list<std::string_view> known) {
  if (object.object() == nullptr) return structural(where, "no object", &object, "an object");
  for (const auto& [key, value] : *object.object())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return structural(where.empty() ? key : where + "." + key, "unknown key", &value, "none");
  return {};
}

/// Nothing that could name another folder, or nothing at all.
bool is_plain_name(std::string_view name) {
  if (name.empty() || name.front() == '.' || name.size() > 255) return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
  });
}

Result<void> parse_schema(const Json& json) {
  CKPTVERIFY_TRY(const std::string schema, string_at(json, "", "schema"));
  if (schema == kSchema) return {};
  Error error = structural("schema", "another schema", json.find("schema"), std::string(kSchema));
  if (schema.starts_with(kSchemaFamily)) error.kind = ErrorKind::kUnsupported;
  return error;
}

Result<void> parse_shards(const Json& json, ShardedIndex& index) {
  const Json* list = json.find("shards");
  if (list == nullptr || list->array() == nullptr)
    return structural("shards", "no list", list, "a list");
  std::set<std::string> names;
  for (const Json& item : *list->array()) {
    const std::string where = "shards." + std::to_string(index.shards.size());
    CKPTVERIFY_TRY_VOID(check_keys(item, where, {"file", "bytes", "xxh3"}));
    ShardedFile shard;
    CKPTVERIFY_TRY(shard.name, string_at(item, where + ".", "file"));
    CKPTVERIFY_TRY(shard.size, unsigned_at(item, where + ".", "bytes"));
    CKPTVERIFY_TRY(shard.digest, string_at(item, where + ".", "xxh3"));
    if (!is_plain_name(shard.name) || shard.name.starts_with("index.json"))
      return structural(where + ".file", "no plain file name of a shard", item.find("file"),
                        "a name without folders");
    if (!names.insert(shard.name).second)
      return structural(where + ".file", "a file is listed twice", item.find("file"), "it once");
    if (!digest_from_hex(shard.digest))
      return structural(where + ".xxh3", "no digest", item.find("xxh3"),
                        "32 lower-case hexadecimal digits");
    index.shards.push_back(std::move(shard));
  }
  return {};
}

Result<ShardedTensor> parse_tensor(const std::string& path, const Json& json,
                                   std::size_t shard_count) {
  const std::string where = "tensors." + path;
  CKPTVERIFY_TRY_VOID(check_keys(json, where, {"shard", "dtype", "shape"}));
  ShardedTensor tensor{.path = path, .shape = {}};
  CKPTVERIFY_TRY(const std::uint64_t shard, unsigned_at(json, where + ".", "shard"));
  if (shard >= shard_count)
    return structural(where + ".shard", "no such shard", json.find("shard"),
                      "under " + std::to_string(shard_count));
  tensor.shard = shard;
  CKPTVERIFY_TRY(const std::string dtype, string_at(json, where + ".", "dtype"));
  const auto named = dtype_named(dtype);
  if (!named)
    return structural(where + ".dtype", "unknown dtype", json.find("dtype"), "PyTorch's name");
  tensor.dtype = *named;
  const Json* shape = json.find("shape");
  if (shape == nullptr || shape->array() == nullptr)
    return structural(where + ".shape", "no list", shape, "a list of unsigned integers");
  for (const Json& item : *shape->array()) {
    const auto dimension = item.unsigned_integer();
    if (!dimension)
      return structural(where + ".shape", "no dimension", &item, "an unsigned integer");
    tensor.shape.push_back(*dimension);
  }
  return tensor;
}

Result<void> parse_aliases(const Json& json, ShardedIndex& index) {
  if (json.find("aliases") == nullptr) return {};
  CKPTVERIFY_TRY(const Json::Object* aliases, object_at(json, "", "aliases"));
  std::map<std::string_view, std::size_t> tensors;
  for (std::size_t i = 0; i < index.tensors.size(); ++i) tensors[index.tensors[i].path] = i;
  for (const auto& [path, target] : *aliases) {
    const std::string where = "aliases." + path;
    const auto found = target.string() == nullptr ? tensors.end() : tensors.find(*target.string());
    if (found == tensors.end())
      return structural(where, "no stored tensor", &target, "the path of a stored tensor");
    if (tensors.contains(path))
      return structural(where, "an alias is stored as well", &target, "no tensor of that path");
    index.aliases.push_back({.path = path, .tensor = found->second});
  }
  return {};
}

Value scalar_of(const Json& json) {
  if (json.string() != nullptr) return *json.string();
  if (json.boolean() != nullptr) return *json.boolean();
  if (json.is_float()) return *json.number();
  if (const auto integer = json.integer()) return *integer;
  const auto large = json.unsigned_integer();
  if (!large) return Null{};
  BigInteger big;  // above int64, so the top byte is no zero
  for (int shift = 56; shift >= 0; shift -= 8)
    big.magnitude.push_back(static_cast<std::byte>(*large >> shift & 0xff));
  return big;
}

/// Leaves of the tree. The parser has limited its depth.
void walk_values(const Json& json, const std::string& path, ShardedIndex& index) {
  const std::string prefix = path.empty() ? "" : path + ".";
  if (json.object() != nullptr && (!json.object()->empty() || path.empty())) {
    for (const auto& [key, value] : *json.object()) walk_values(value, prefix + key, index);
  } else if (json.array() != nullptr && !json.array()->empty()) {
    for (std::size_t i = 0; i < json.array()->size(); ++i)
      walk_values((*json.array())[i], prefix + std::to_string(i), index);
  } else if (json.object() != nullptr) {
    index.values.emplace_back(path, EmptyMap{});
  } else if (json.array() != nullptr) {
    index.values.emplace_back(path, EmptyList{});
  } else {
    index.values.emplace_back(path, scalar_of(json));
  }
}

}  // namespace

Result<ShardedIndex> parse_sharded_index(std::string_view text) {
  auto parsed = Json::parse(text);
  if (!parsed)
    return Error{.message = "no strict JSON: " + parsed.error().message,
                 .offset = parsed.error().offset,
                 .cause = Cause{CauseKind::kStStruct, {}}};
  const Json& json = *parsed;
  if (json.object() == nullptr) return structural("index", "no object", nullptr, "an object");
  CKPTVERIFY_TRY_VOID(parse_schema(json));
  CKPTVERIFY_TRY_VOID(
      check_keys(json, "", {"schema", "format", "step", "shards", "tensors", "aliases", "values"}));
  ShardedIndex index;
  CKPTVERIFY_TRY(index.format, string_at(json, "", "format"));
  if (std::find(kFormats.begin(), kFormats.end(), index.format) == kFormats.end())
    return structural("format", "unknown format", json.find("format"),
                      "hdf5, safetensors or torch");
  CKPTVERIFY_TRY(index.step, unsigned_at(json, "", "step"));
  CKPTVERIFY_TRY_VOID(parse_shards(json, index));
  CKPTVERIFY_TRY(const Json::Object* tensors, object_at(json, "", "tensors"));
  for (const auto& [path, description] : *tensors) {
    CKPTVERIFY_TRY(ShardedTensor tensor, parse_tensor(path, description, index.shards.size()));
    index.tensors.push_back(std::move(tensor));
  }
  CKPTVERIFY_TRY_VOID(parse_aliases(json, index));
  if (json.find("values") != nullptr) {
    CKPTVERIFY_TRY_VOID(object_at(json, "", "values"));
    walk_values(*json.find("values"), "", index);
  }
  return index;
}

}  // namespace ckptverify
