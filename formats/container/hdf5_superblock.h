// The superblock of an HDF5 file, read by us before the library may open the file: it says how long
// the file must be, and in versions 2 and 3 it has a checksum.
#pragma once

#include <cstdint>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"

namespace ckptverify {

struct Hdf5Superblock {
  std::uint8_t version = 0;
  std::uint64_t end_of_file = 0;  // absolute: the size that the writer left
  bool open_for_writing = false;  // a writer has it open, or died with it open
};

/// The signature at 0, or at 512 times a power of two.
bool has_hdf5_signature(Bytes file);

/// Refuses what is damaged or cut short; unsupported where a user block precedes the superblock or
/// offsets are not of 8 bytes.
Result<Hdf5Superblock> parse_hdf5_superblock(Bytes file);

/// Bob Jenkins' lookup3 over little-endian words with seed 0, HDF5's checksum of metadata.
std::uint32_t hdf5_lookup3(Bytes bytes);

}  // namespace ckptverify
