// Zstandard, RFC 8878: one frame to exactly as many bytes as the caller expects. Nothing may
// follow the frame, and what it claims is checked against what its bytes can hold before memory is
// taken.
#pragma once

#include <cstdint>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// A Decode of tensor.h. Offsets of errors count from the frame's first byte.
Result<std::vector<std::byte>> decode_zstd(Bytes stored, std::uint64_t size);

}  // namespace ckptverify
