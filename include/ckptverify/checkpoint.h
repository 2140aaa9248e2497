// A checkpoint as a reader understood it: entries by path, the files they lie in, who owns each
// byte, the checksums that the format carries, and what could not be interpreted. Owns its
// mappings.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ckptverify/component.h"
#include "ckptverify/coverage.h"
#include "ckptverify/finding.h"
#include "ckptverify/source.h"
#include "ckptverify/tensor.h"
#include "ckptverify/value.h"

namespace ckptverify {

/// An object of a class that we do not model. Not hashed, always listed.
struct Opaque {
  std::string type;  // "module.Class"
};

struct Composite;

/// What stands under a path.
using Node = std::variant<Tensor, Value, Opaque, std::shared_ptr<const Composite>>;

/// A quantized, sparse, nested or subclass tensor: its named parts.
struct Composite {
  std::string kind;
  std::vector<std::pair<std::string, Node>> parts;
};

struct Entry {
  std::string path;  // keys and indices joined by '.'
  Node node;
  Component component = Component::kOther;
  std::optional<std::uint32_t> rank = {};  // of a component that each rank has for itself
  std::size_t root_size = 0;  // bytes of the path that are the component's root, its dot included
  std::string alias_of = {};  // the first entry with the same stored elements; empty if none
};

/// The path inside its component, which is what the fingerprint hashes.
std::string_view relative_path(const Entry& entry);
/// "model", or "rng.1" for a component of one rank.
std::string component_label(const Entry& entry);

/// Sets component and root from the first key of every path by component_of_key(). A leaf that is
/// itself the top-level key keeps its whole path.
void assign_components(std::vector<Entry>& entries);

/// A checksum that can be computed piece by piece, by several threads: one pass over the bytes then
/// feeds it and other digests.
struct PiecewiseChecksum {
  std::uint64_t (*extend)(std::uint64_t sum, Bytes more);  // of no bytes: 0
  std::uint64_t (*join)(std::uint64_t first, std::uint64_t second, std::uint64_t second_size);
  std::string (*text)(std::uint64_t sum);  // what StoredChecksum::compute says of the whole
};

/// A digest that the checkpoint stores over a run of its own bytes, or over a tensor.
struct StoredChecksum {
  std::string subject;            // "data/3 in rank0.pt"
  Run run;                        // the bytes that it covers, as stored
  std::string_view algorithm;     // "crc32", "xxh3-128"
  std::string expected;           // lower-case hexadecimal
  std::string (*compute)(Bytes);  // the same text form
  /// Path of a tensor: the digest is over its logical bytes, and `run` says nothing.
  std::string entry = {};
  /// Where `run` is covered as stored and the algorithm allows it; `compute` says the same.
  const PiecewiseChecksum* piecewise = nullptr;
};

struct Checkpoint {
  std::string format;          // a name of the format table
  std::vector<Source> files;   // every file that belongs to it
  std::vector<Entry> entries;  // sorted by path
  Coverage coverage;
  std::vector<StoredChecksum> checksums;
  std::vector<Finding> findings;           // what the reader noticed and read on
  std::vector<std::string> uninterpreted;  // what it could not interpret: never clean, inconclusive
  std::vector<std::string> unread = {};    // files of its directory that no reader looked into
};

/// Sorts the entries, tells two of one path apart by a suffix, and notes that as a finding.
void sort_entries(Checkpoint& checkpoint);

const Entry* find_entry(const Checkpoint& checkpoint, std::string_view path);

/// The stored bytes of a run, bounds-checked against its file.
Result<Bytes> stored_bytes(const Checkpoint& checkpoint, const Run& run);

/// The logical bytes of a tensor: a view of the file where that is possible, gathered otherwise.
class LogicalBytes {
 public:
  explicit LogicalBytes(Bytes view) : view_(view) {}
  explicit LogicalBytes(std::vector<std::byte> owned) : owned_(std::move(owned)), view_(owned_) {}
  LogicalBytes(LogicalBytes&&) = default;
  LogicalBytes& operator=(LogicalBytes&&) = default;
  LogicalBytes(const LogicalBytes&) = delete;
  LogicalBytes& operator=(const LogicalBytes&) = delete;
  ~LogicalBytes() = default;
  Bytes view() const { return view_; }

 private:
  std::vector<std::byte> owned_;
  Bytes view_;
};

/// Elements in row-major order, little-endian, strides gathered, pieces assembled, conj and neg
/// views resolved; everything else exactly as stored. Decodes what is encoded.
Result<LogicalBytes> logical_bytes(const Checkpoint& checkpoint, const Tensor& tensor);

}  // namespace ckptverify
