// What the tests of safetensors, HDF5 and sharded directories share: fixture files, the oracle that
// the real writer's framework left beside them, and what became of a damaged copy.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "ckptverify/fingerprint.h"
#include "ckptverify/json.h"
#include "ckptverify/sha256.h"
#include "formats/formats.h"

namespace ckptverify::fixture {

using FileBytes = std::vector<std::byte>;

inline FileBytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_FALSE(text.empty()) << path;
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

inline std::filesystem::path good(const std::string& relative) {
  return std::filesystem::path(CKPTVERIFY_FIXTURES) / relative;
}

/// The name of a finding's or an error's cause; "-" without one.
inline std::string cause_of(const Error& error) {
  return error.cause ? error.cause->id() : "-";
}

/// Dtype, shape and SHA-256 of every tensor of the oracle.
inline void expect_oracle(const Checkpoint& checkpoint, const std::filesystem::path& oracle_file) {
  const FileBytes text = read_file(oracle_file);
  const auto oracle = Json::parse(as_text(text));
  ASSERT_TRUE(oracle) << oracle.error().text();
  ASSERT_NE(oracle->find("tensors"), nullptr);
  for (const auto& [path, expected] : *oracle->find("tensors")->object()) {
    const Entry* entry = find_entry(checkpoint, path);
    ASSERT_NE(entry, nullptr) << path;
    const auto* tensor = std::get_if<Tensor>(&entry->node);
    ASSERT_NE(tensor, nullptr) << path;
    EXPECT_EQ(dtype_name(tensor->dtype), *expected.find("dtype")->string()) << path;
    std::vector<std::uint64_t> shape;
    for (const Json& dimension : *expected.find("shape")->array())
      shape.push_back(*dimension.unsigned_integer());
    EXPECT_EQ(tensor->shape, shape) << path;
    const auto logical = logical_bytes(checkpoint, *tensor);
    ASSERT_TRUE(logical) << path << ": " << logical.error().text();
    EXPECT_EQ(sha256_hex(logical->view()), *expected.find("sha256")->string()) << path;
  }
}

/// Every byte of every file has exactly one owner.
inline void expect_whole_coverage(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> sizes;
  for (const Source& file : checkpoint.files) sizes.push_back(file.bytes().size());
  EXPECT_TRUE(checkpoint.coverage.gaps(sizes).empty());
  EXPECT_TRUE(checkpoint.coverage.overlaps().empty());
}

inline bool is_bad(const Finding& finding) {
  return finding.status == Status::kFail || finding.status == Status::kInconclusive;
}

/// Whether reading and verifying says that something is wrong, or what is read is something else.
inline bool notices(const Result<Checkpoint>& damaged, const Digest& good_whole) {
  if (!damaged || !damaged->uninterpreted.empty()) return true;
  if (std::any_of(damaged->findings.begin(), damaged->findings.end(), is_bad)) return true;
  const auto checksums = verify_checksums(*damaged, Threads{1});
  if (std::any_of(checksums.begin(), checksums.end(), is_bad)) return true;
  const auto print = fingerprint(*damaged, Threads{1});
  return !print || print->whole != good_whole;
}

inline Owner owner_of(const Checkpoint& checkpoint, std::uint32_t file, std::uint64_t offset) {
  for (const OwnedRange& owned : checkpoint.coverage.sorted())
    if (owned.range.file == file && owned.range.offset <= offset &&
        offset - owned.range.offset < owned.range.size)
      return owned.owner;
  ADD_FAILURE() << "nobody owns byte " << offset << " of file " << file;
  return Owner::kUnverifiable;
}

/// The findings of one cause: their subjects.
inline std::vector<std::string> subjects_of(const Checkpoint& checkpoint, std::string_view cause) {
  std::vector<std::string> subjects;
  for (const Finding& finding : checkpoint.findings)
    if (finding.status == Status::kFail && finding.cause && finding.cause->id() == cause)
      subjects.push_back(finding.subject);
  return subjects;
}

}  // namespace ckptverify::fixture
