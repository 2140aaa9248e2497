// What the PyTorch readers' tests share: fixture files, a small zip and pickle writer for bad ones,
// and the comparison with what PyTorch itself said of a file.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/json.h"
#include "ckptverify/sha256.h"
#include "formats/encoding/deflate.h"

namespace ckptverify::testing {

inline std::string torch_fixture_text(const std::string& name) {
  std::ifstream file(std::filesystem::path(CKPTVERIFY_FIXTURES) / name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::byte> byte_vector(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

inline std::string little(std::uint64_t value, unsigned size) {
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// A plain zip of stored entries, without descriptors, padding or zip64.
struct SmallZip {
  std::string bytes;
  std::vector<std::uint64_t> header_offsets;
  std::uint64_t directory_offset = 0;
};

inline SmallZip small_zip(const std::vector<std::pair<std::string, std::string>>& entries) {
  SmallZip zip;
  std::string directory;
  for (const auto& [name, payload] : entries) {
    const std::string common = std::string(2, '\0') + little(0x0800, 2) + std::string(6, '\0') +
                               little(crc32(as_bytes(payload)), 4) + little(payload.size(), 4) +
                               little(payload.size(), 4) + little(name.size(), 2) +
                               std::string(2, '\0');
    zip.header_offsets.push_back(zip.bytes.size());
    directory += "PK\1\2" + std::string(2, '\0') + common + std::string(10, '\0') +
                 little(zip.bytes.size(), 4) + name;
    zip.bytes += "PK\3\4" + common + name + payload;
  }
  zip.directory_offset = zip.bytes.size();
  zip.bytes += directory + "PK\5\6" + std::string(4, '\0') + little(entries.size(), 2) +
               little(entries.size(), 2) + little(directory.size(), 4) +
               little(zip.directory_offset, 4) + std::string(2, '\0');
  return zip;
}

/// Protocol 2, as the writer of torch.save spells it.
inline std::string pickle_string(std::string_view text) {
  return "X" + little(text.size(), 4) + std::string(text);
}
inline std::string pickle_int(std::int32_t value) {
  return "J" + little(static_cast<std::uint32_t>(value), 4);
}
inline std::string pickle_tuple(const std::vector<std::int32_t>& items) {
  std::string text = "(";
  for (const std::int32_t item : items) text += pickle_int(item);
  return text + "t";
}
struct PickledTensor {
  std::string storage = "FloatStorage";
  std::string key = "0";
  std::int32_t count = 4;
  std::int32_t offset = 0;
  std::vector<std::int32_t> size = {4};
  std::vector<std::int32_t> stride = {1};
};
inline std::string pickle_tensor(const PickledTensor& tensor = {}) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickle_string("storage") + "ctorch\n" +
         tensor.storage + "\n" + pickle_string(tensor.key) + pickle_string("cpu") +
         pickle_int(tensor.count) + "tQ" + pickle_int(tensor.offset) + pickle_tuple(tensor.size) +
         pickle_tuple(tensor.stride) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}
inline std::string pickle_dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "}(";
  for (const auto& [key, value] : items) text += pickle_string(key) + value;
  return text + "u";
}
inline std::string pickled(const std::string& body) {
  return "\x80\x02" + body + ".";
}

/// A whole torch.save archive around a pickle; `storage` is data/0.
inline SmallZip torch_archive(const std::string& pickle, const std::string& storage) {
  return small_zip({{"a/data.pkl", pickle},
                    {"a/byteorder", "little"},
                    {"a/data/0", storage},
                    {"a/version", "3\n"}});
}

/// "a[0][1].b" is "a.0.1.b".
inline std::string path_of_oracle(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '[') {
      if (!out.empty()) out += '.';
    } else if (c != ']') {
      out += c;
    }
  }
  return out;
}

inline void expect_value(const Value& value, const Json& expected, const std::string& path) {
  if (expected.is_null()) {
    EXPECT_TRUE(std::holds_alternative<Null>(value)) << path;
  } else if (const bool* truth = expected.boolean()) {
    EXPECT_EQ(value, Value(*truth)) << path;
  } else if (const double* number = std::get_if<double>(&value)) {
    ASSERT_TRUE(expected.number()) << path;
    const double wanted = *expected.number();
    EXPECT_TRUE(*number == wanted || (*number != *number && wanted != wanted)) << path;
  } else if (const auto integer = expected.integer()) {
    EXPECT_EQ(value, Value(*integer)) << path;
  } else if (const auto* text = expected.string()) {
    const bool big = std::holds_alternative<BigInteger>(value);
    EXPECT_EQ(value_text(value), big ? *text : value_text(Value(*text))) << path;
  } else {
    EXPECT_EQ(value_text(value), expected.text()) << path;
  }
}

/// Every tensor by dtype, shape and SHA-256, and every plain value; no tensor but the oracle's,
/// except for NumPy arrays, which the oracle lists as objects.
inline void expect_oracle(const Checkpoint& checkpoint, const std::string& oracle_name) {
  const auto oracle = Json::parse(torch_fixture_text(oracle_name));
  ASSERT_TRUE(oracle) << oracle.error().text();
  std::set<std::string> expected_paths;
  std::set<std::string> objects;
  for (const auto& [name, expected] : *oracle->find("tensors")->object()) {
    const std::string path = path_of_oracle(name);
    expected_paths.insert(path);
    const Entry* entry = find_entry(checkpoint, path);
    ASSERT_NE(entry, nullptr) << path;
    const auto* tensor = std::get_if<Tensor>(&entry->node);
    ASSERT_NE(tensor, nullptr) << path;
    EXPECT_EQ(dtype_name(tensor->dtype), *expected.find("dtype")->string()) << path;
    std::vector<std::uint64_t> shape;
    for (const Json& size : *expected.find("shape")->array()) {
      shape.push_back(*size.unsigned_integer());
    }
    EXPECT_EQ(tensor->shape, shape) << path;
    const auto bytes = logical_bytes(checkpoint, *tensor);
    ASSERT_TRUE(bytes) << path << ": " << bytes.error().text();
    EXPECT_EQ(sha256_hex(bytes->view()), *expected.find("sha256")->string()) << path;
  }
  const Json::Object no_values;
  const Json* values = oracle->find("values");  // an oracle may speak of tensors alone
  for (const auto& [name, expected] : values == nullptr ? no_values : *values->object()) {
    const std::string path = path_of_oracle(name);
    if (expected.string() != nullptr && expected.string()->starts_with('<')) {
      expected_paths.insert(path);  // an object: a test of its own says what becomes of it
      objects.insert(path + ".");
      continue;
    }
    const Entry* entry = find_entry(checkpoint, path);
    ASSERT_NE(entry, nullptr) << path;
    const auto* value = std::get_if<Value>(&entry->node);
    ASSERT_NE(value, nullptr) << path;
    expect_value(*value, expected, path);
  }
  for (const Entry& entry : checkpoint.entries) {
    if (!std::holds_alternative<Tensor>(entry.node)) continue;
    if (std::any_of(objects.begin(), objects.end(),
                    [&](const std::string& root) { return entry.path.starts_with(root); })) {
      continue;
    }
    EXPECT_TRUE(expected_paths.contains(entry.path)) << entry.path << " is not in the oracle";
  }
}

/// The plain tensors that composite ones are made of, by shape and SHA-256.
inline void expect_parts(const Checkpoint& checkpoint, const std::string& oracle_name) {
  const auto oracle = Json::parse(torch_fixture_text(oracle_name));
  ASSERT_TRUE(oracle) << oracle.error().text();
  if (oracle->find("parts") == nullptr) return;
  for (const auto& [name, expected_parts] : *oracle->find("parts")->object()) {
    if (expected_parts.object()->empty()) continue;
    const Entry* entry = find_entry(checkpoint, path_of_oracle(name));
    ASSERT_NE(entry, nullptr) << name;
    const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&entry->node);
    ASSERT_NE(composite, nullptr) << name;
    for (const auto& [part_name, expected] : *expected_parts.object()) {
      SCOPED_TRACE(name + ": " + part_name);
      const auto& parts = (*composite)->parts;
      const auto part = std::find_if(parts.begin(), parts.end(),
                                     [&](const auto& other) { return other.first == part_name; });
      ASSERT_NE(part, parts.end());
      const auto* tensor = std::get_if<Tensor>(&part->second);
      ASSERT_NE(tensor, nullptr);
      std::vector<std::uint64_t> shape;
      for (const Json& size : *expected.find("shape")->array()) {
        shape.push_back(*size.unsigned_integer());
      }
      EXPECT_EQ(tensor->shape, shape);
      const auto bytes = logical_bytes(checkpoint, *tensor);
      ASSERT_TRUE(bytes) << bytes.error().text();
      EXPECT_EQ(sha256_hex(bytes->view()), *expected.find("sha256")->string());
    }
  }
}

}  // namespace ckptverify::testing
