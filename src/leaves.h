// A tensor's logical bytes are hashed in leaves, so that many threads can share one tensor. This is
// the part of the fingerprint that the parallel walk needs and users of the digests do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// Bytes of a leaf; the last one of a tensor is as short as it must be. Part of version 1.
inline constexpr std::uint64_t kLeafSize = std::uint64_t{1} << 20;

constexpr std::uint64_t leaf_count(std::uint64_t size) {
  return size / kLeafSize + (size % kLeafSize == 0 ? 0 : 1);
}

/// The digest of a tensor of `size` logical bytes from the digests of its leaves, in order.
Digest digest_of_leaves(std::string_view dtype, std::span<const std::uint64_t> shape,
                        std::uint64_t size, std::span<const Digest> leaves);

/// file_digest() of a file of `size` bytes from the digests of its leaves, in order.
Digest file_digest_of_leaves(std::uint64_t size, std::span<const Digest> leaves);

/// XXH3-128 of bytes that come piece by piece.
class ByteHasher {
 public:
  ByteHasher();
  void update(Bytes bytes);
  Digest finish() const;

 private:
  // Of an XXH3_state_t, which fingerprint.cc alone knows and asserts.
  static constexpr std::size_t kStateSize = 576;
  static constexpr std::size_t kStateAlignment = 64;
  alignas(kStateAlignment) std::array<std::byte, kStateSize> state_;
};

}  // namespace ckptverify
