// Zstandard, RFC 8878: one frame to exactly as many bytes as the caller expects, or a stream of
// frames of unknown size. Nothing may follow the last frame, and no more memory is taken than the
// bytes can fill or the caller allows.
#pragma once

#include <cstdint>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// A Decode of tensor.h. Offsets of errors count from the frame's first byte.
Result<std::vector<std::byte>> decode_zstd(Bytes stored, std::uint64_t size);

/// Frames that do not say how much they hold, one after another to the end of `stored`. More than
/// `size_max` bytes are kUnsupported; a frame without its end is kTrunc.
Result<std::vector<std::byte>> decode_zstd_stream(Bytes stored, std::uint64_t size_max);

}  // namespace ckptverify
