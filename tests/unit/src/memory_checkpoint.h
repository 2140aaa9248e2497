// A checkpoint in memory for tests: tensors are appended to one file whose every byte is claimed.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"

namespace ckptverify {

/// The little-endian bytes of numbers.
template <class Number>
std::vector<std::byte> bytes_of(std::initializer_list<Number> numbers) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<std::byte> bytes(numbers.size() * sizeof(Number));
  std::size_t at = 0;
  for (const Number number : numbers) {
    std::memcpy(bytes.data() + at, &number, sizeof number);
    at += sizeof number;
  }
  return bytes;
}

/// `size` bytes that do not repeat early.
inline std::vector<std::byte> patterned_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 251) % 253);
  return bytes;
}

class MemoryCheckpoint {
 public:
  /// Appends bytes to the file and owns them.
  Run store(std::string label, const std::vector<std::byte>& bytes) {
    const Run run{.offset = file_.size(), .stored_size = bytes.size(), .size = bytes.size()};
    file_.insert(file_.end(), bytes.begin(), bytes.end());
    checkpoint_.coverage.own({.range = {.offset = run.offset, .size = bytes.size()},
                              .owner = Owner::kTensor,
                              .label = std::move(label)});
    return run;
  }

  MemoryCheckpoint& tensor(std::string path, DType dtype, std::vector<std::uint64_t> shape,
                           const std::vector<std::byte>& bytes) {
    const Run run = store(path, bytes);
    return node(std::move(path), contiguous_tensor(dtype, std::move(shape), run));
  }

  MemoryCheckpoint& value(std::string path, Value value) {
    return node(std::move(path), Node(std::move(value)));
  }

  MemoryCheckpoint& node(std::string path, Node node) {
    checkpoint_.entries.push_back({.path = std::move(path), .node = std::move(node)});
    return *this;
  }

  /// A second path of a tensor's elements.
  MemoryCheckpoint& alias(std::string path, std::string_view of) {
    for (const Entry& entry : checkpoint_.entries) {
      if (entry.path != of) continue;
      checkpoint_.entries.push_back(
          {.path = std::move(path), .node = entry.node, .alias_of = std::string(of)});
      return *this;
    }
    CKPTVERIFY_ASSERT(false);
  }

  /// With a file in which nobody owns the last `unowned` bytes.
  Checkpoint build(std::size_t unowned = 0) const {
    Checkpoint built = checkpoint_;
    std::vector<std::byte> file = file_;
    file.resize(file.size() + unowned);
    built.format = "memory";
    built.files = {Source::memory("memory.bin", std::move(file))};
    assign_components(built.entries);
    sort_entries(built);
    return built;
  }

  std::vector<std::byte>& file() { return file_; }

 private:
  Checkpoint checkpoint_;
  std::vector<std::byte> file_;
};

}  // namespace ckptverify
