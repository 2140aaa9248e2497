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

// A CRC is a polynomial over GF(2) modulo this one; its highest bit is the coefficient of x^0.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kOne = std::uint32_t{1} << 31;
constexpr std::uint32_t kByteShift = kOne >> 8;  // x^8

std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (std::uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) sum ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return sum;
}

std::uint32_t power(std::uint32_t base, std::uint64_t exponent) {
  std::uint32_t result = kOne;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = product(result, base);
    base = product(base, base);
  }
  return result;
}

std::uint64_t extend_crc32(std::uint64_t crc, Bytes more) {
  return libdeflate_crc32(static_cast<std::uint32_t>(crc), more.data(), more.size());
}

/// Bytes behind the first multiply its polynomial by x^8 each.
std::uint64_t join_crc32(std::uint64_t first, std::uint64_t second, std::uint64_t second_size) {
  return product(power(kByteShift, second_size), static_cast<std::uint32_t>(first)) ^ second;
}

std::string text_of_crc32(std::uint64_t crc) {
  return crc32_text(static_cast<std::uint32_t>(crc));
}

}  // namespace

const PiecewiseChecksum kCrc32Pieces = {extend_crc32, join_crc32, text_of_crc32};

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
