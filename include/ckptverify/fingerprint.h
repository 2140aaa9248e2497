// The fingerprint, version 1: a digest an entry, a component and the whole that does not depend on
// sharding, file layout or machine. docs/fingerprint.md is the definition.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"

namespace ckptverify {

struct Digest {
  std::array<std::uint8_t, 16> bytes{};

  std::string hex() const;   // 32 lower-case digits
  std::string text() const;  // "ckv1:" and the digits
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

std::optional<Digest> digest_from_hex(std::string_view hex);

/// XXH3-128 of the bytes.
Digest hash_bytes(Bytes bytes);

/// `dtype` is PyTorch's name; `logical` are the tensor's logical bytes.
Digest tensor_digest(std::string_view dtype, std::span<const std::uint64_t> shape, Bytes logical);
Digest absent_tensor_digest(std::string_view dtype, std::span<const std::uint64_t> shape);
Digest value_digest(const Value& value);
Digest composite_digest(std::string_view kind, std::vector<std::pair<std::string, Digest>> parts);
Digest component_digest(std::vector<std::pair<std::string, Digest>> entries);
Digest checkpoint_digest(std::vector<std::pair<std::string, Digest>> components);

struct ComponentFingerprint {
  Digest tensors;  // over its tensors alone
  Digest all;      // over all entries
  std::uint64_t entry_count = 0;
  std::uint64_t tensor_bytes = 0;
};

struct Fingerprint {
  Digest whole;
  std::map<std::string, ComponentFingerprint> components;  // by component_label()
  std::vector<std::optional<Digest>>
      entries;  // parallel to Checkpoint::entries; none for opaque ones
};

/// Threads to use; 0 is one a core.
struct Threads {
  unsigned count = 0;
  /// Counts the bytes that have been read, for whoever shows progress.
  std::atomic<std::uint64_t>* bytes_read = nullptr;
};

/// Reads every byte once, large tensors leaf by leaf in parallel.
Result<Fingerprint> fingerprint(const Checkpoint& checkpoint, Threads threads = {});

/// The fingerprint and, if wanted, a digest of every file, in one pass over the bytes, in which the
/// stored checksums are verified, too: of damaged bytes the fingerprint is nobody's.
enum class FileDigests { kNo, kYes };
struct Hashes {
  Fingerprint fingerprint;
  std::vector<Digest> files;  // file_digest() of each, parallel to Checkpoint::files; or none
  std::vector<Finding> damaged = {};  // one for each stored checksum that is wrong
};
Result<Hashes> hash_checkpoint(const Checkpoint& checkpoint, FileDigests files,
                               Threads threads = {});

/// Of a file's bytes as they are, whatever they mean. Unlike XXH3 over the whole it is made of
/// leaves, which many threads can share.
Digest file_digest(Bytes bytes);

/// Verifies every stored checksum: one finding for each that is wrong, one for all that are right.
std::vector<Finding> verify_checksums(const Checkpoint& checkpoint, Threads threads = {});

}  // namespace ckptverify
