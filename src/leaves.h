// A tensor's logical bytes are hashed in leaves, so that many threads can share one tensor. This is
// the part of the fingerprint that the parallel walk needs and users of the digests do not.
#pragma once

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

}  // namespace ckptverify
