// CRC-32 (IEEE, as zip and gzip use it) and raw deflate streams.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// No deflate stream decodes to more than this many bytes for each of its own (RFC 1951: 258 bytes
/// from two bits). A claim beyond it is refused before anything is allocated.
inline constexpr std::uint64_t kDeflateRatioMax = 1032;

std::uint32_t crc32(Bytes bytes);
/// Eight lower-case hexadecimal digits.
std::string crc32_text(std::uint32_t crc);
/// crc32_text() of the bytes, in the shape that StoredChecksum wants.
std::string crc32_of_stored(Bytes stored);
/// The same of what a deflate stream decodes to; "undecodable" where it is none.
std::string crc32_of_deflated(Bytes stored);
/// crc32_of_stored() by pieces.
extern const PiecewiseChecksum kCrc32Pieces;

/// Decodes a whole raw deflate stream to exactly `size` bytes.
Result<std::vector<std::byte>> inflate(Bytes stored, std::uint64_t size);

}  // namespace ckptverify
