// The only file that includes libdeflate.
#include "formats/encoding/deflate.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

namespace ckptverify {
namespace {

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const {
    libdeflate_free_decompressor(decompressor);
  }
};
using Decompressor = std::unique_ptr<libdeflate_decompressor, FreeDecompressor>;

struct Decoded {
  libdeflate_result result = LIBDEFLATE_BAD_DATA;
  std::uint64_t consumed = 0;
  std::uint64_t size = 0;
};

Decoded decode_into(Bytes stored, std::vector<std::byte>& out) {
  const Decompressor decompressor(libdeflate_alloc_decompressor());
  CKPTVERIFY_ASSERT(decompressor != nullptr);
  // The library wants addresses even for nothing.
  std::byte nothing{};
  std::size_t consumed = 0;
  std::size_t produced = 0;
  Decoded decoded;
  decoded.result = libdeflate_deflate_decompress_ex(
      decompressor.get(), stored.empty() ? &nothing : stored.data(), stored.size(),
      out.empty() ? &nothing : out.data(), out.size(), &consumed, &produced);
  decoded.consumed = consumed;
  decoded.size = produced;
  return decoded;
}

std::uint64_t largest_size(Bytes stored) {
  const auto largest = checked_multiply(stored.size(), kDeflateRatioMax);
  return largest ? *largest : stored.size();
}

/// The whole stream, whatever its size, by doubling the room until it fits.
std::optional<std::vector<std::byte>> inflate_all(Bytes stored) {
  const std::uint64_t limit = largest_size(stored);
  for (std::uint64_t room = std::min<std::uint64_t>(limit, 4 * stored.size() + 64);;
       room = std::min(limit, 2 * room)) {
    std::vector<std::byte> out(room);
    const Decoded decoded = decode_into(stored, out);
    if (decoded.result == LIBDEFLATE_SUCCESS && decoded.consumed == stored.size()) {
      out.resize(decoded.size);
      return out;
    }
    if (decoded.result != LIBDEFLATE_INSUFFICIENT_SPACE || room == limit) return std::nullopt;
  }
}

}  // namespace

std::uint32_t crc32(Bytes bytes) {
  return libdeflate_crc32(0, bytes.data(), bytes.size());
}

std::string crc32_text(std::uint32_t crc) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", static_cast<unsigned>(crc));
  return text.data();
}

std::string crc32_of_stored(Bytes stored) {
  return crc32_text(crc32(stored));
}

std::string crc32_of_deflated(Bytes stored) {
  const auto bytes = inflate_all(stored);
  return bytes ? crc32_text(crc32(*bytes)) : "undecodable";
}

Result<std::vector<std::byte>> inflate(Bytes stored, std::uint64_t size) {
  if (size > largest_size(stored)) {
    return Error{.message = "deflate stream of " + std::to_string(stored.size()) +
                            " bytes cannot decode that far; found " + std::to_string(size) +
                            " bytes, expected at most " + std::to_string(largest_size(stored)),
                 .cause = Cause{CauseKind::kLayout}};
  }
  std::vector<std::byte> out(size);
  const Decoded decoded = decode_into(stored, out);
  if (decoded.result != LIBDEFLATE_SUCCESS || decoded.consumed != stored.size() ||
      decoded.size != size) {
    return Error{.message = "deflate stream is damaged; found " + std::to_string(decoded.size) +
                            " decoded bytes, expected " + std::to_string(size),
                 .cause = Cause{CauseKind::kBitrot}};
  }
  return out;
}

}  // namespace ckptverify
