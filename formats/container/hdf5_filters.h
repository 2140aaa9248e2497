// HDF5's filter pipeline, backwards: what stands between the stored bytes of a chunk and its
// elements. Knows shuffle, deflate, zstd and Fletcher-32, in the order in which writers apply them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ckptverify/tensor.h"

namespace ckptverify {

inline constexpr std::uint32_t kHdf5Deflate = 1;
inline constexpr std::uint32_t kHdf5Shuffle = 2;
inline constexpr std::uint32_t kHdf5Fletcher32 = 3;
inline constexpr std::uint32_t kHdf5Zstd = 32015;

/// The decoder of a pipeline, ids in the order of writing; null for an empty one, nothing where a
/// filter, their order or the element's size is not known. `element_size` is what shuffle took.
std::optional<Decode> hdf5_decoder(std::span<const std::uint32_t> ids, std::uint64_t element_size);

/// HDF5's variant of Fletcher's checksum: big-endian 16-bit words, an odd last byte is a high one.
std::uint32_t hdf5_fletcher32(Bytes bytes);

/// The same of a stored chunk without the checksum at its end, as 8 hexadecimal digits; and the
/// checksum that is stored there. A chunk that is too short for one has neither.
std::string hdf5_chunk_checksum(Bytes chunk);
std::string hdf5_stored_checksum(Bytes chunk);

}  // namespace ckptverify
