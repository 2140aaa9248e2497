// One decoder a pipeline, made by templates because a Decode carries no state.
#include "formats/container/hdf5_filters.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "formats/encoding/deflate.h"
#include "formats/encoding/zstd.h"

namespace ckptverify {
namespace {

enum class Compressor { kNone, kDeflate, kZstd };

constexpr std::uint64_t kChecksumSize = 4;
constexpr std::uint64_t kZlibHeaderSize = 2;   // RFC 1950: CMF and FLG
constexpr std::uint64_t kZlibTrailerSize = 4;  // Adler-32, big-endian

Error damaged(std::uint64_t offset, std::string message) {
  return Error{
      .message = std::move(message), .offset = offset, .cause = Cause{CauseKind::kBitrot, {}}};
}

std::string hexadecimal(std::uint32_t number) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", number);
  return text.data();
}

std::uint32_t adler32(Bytes bytes) {
  constexpr std::uint32_t kModulus = 65521;
  std::uint32_t a = 1, b = 0;
  for (const std::byte byte : bytes) {
    a = (a + std::to_integer<std::uint32_t>(byte)) % kModulus;
    b = (b + a) % kModulus;
  }
  return b << 16 | a;
}

/// A zlib stream (RFC 1950), which is what the deflate filter stores.
Result<std::vector<std::byte>> decode_zlib(Bytes stored, std::uint64_t size) {
  if (stored.size() < kZlibHeaderSize + kZlibTrailerSize)
    return damaged(0, "zlib stream is too short; found " + std::to_string(stored.size()) +
                          " bytes, expected at least 6");
  const auto method = std::to_integer<std::uint32_t>(stored[0]);
  const auto flags = std::to_integer<std::uint32_t>(stored[1]);
  const bool dictionary = (flags & 0x20) != 0;
  if ((method & 15) != 8 || (method >> 4) > 7 || (method * 256 + flags) % 31 != 0 || dictionary)
    return damaged(0, "zlib header is damaged; found bytes " + std::to_string(method) + " and " +
                          std::to_string(flags) + ", expected method 8 and a multiple of 31");
  const std::uint64_t end = stored.size() - kZlibTrailerSize;
  CKPTVERIFY_TRY(const Bytes stream, slice(stored, kZlibHeaderSize, end - kZlibHeaderSize));
  CKPTVERIFY_TRY(std::vector<std::byte> decoded, inflate(stream, size));
  std::uint32_t expected = 0;
  for (std::uint64_t i = end; i < stored.size(); ++i)
    expected = expected << 8 | std::to_integer<std::uint32_t>(stored[i]);
  if (const std::uint32_t found = adler32(decoded); found != expected)
    return damaged(end, "Adler-32 is wrong; found " + std::to_string(found) + ", expected " +
                            std::to_string(expected));
  return decoded;
}

Result<std::vector<std::byte>> decompress(Compressor compressor, Bytes stored, std::uint64_t size) {
  if (compressor == Compressor::kZstd) return decode_zstd(stored, size);
  if (compressor == Compressor::kDeflate) return decode_zlib(stored, size);
  if (stored.size() != size)
    return damaged(0, "chunk has another size; found " + std::to_string(stored.size()) +
                          " bytes, expected " + std::to_string(size));
  return std::vector<std::byte>(stored.begin(), stored.end());
}

/// Shuffle puts the first bytes of all elements first, then the second ones; what is left over at
/// the end stays where it is.
std::vector<std::byte> unshuffle(const std::vector<std::byte>& shuffled, std::size_t element) {
  std::vector<std::byte> plain = shuffled;
  const std::size_t count = shuffled.size() / element;
  for (std::size_t byte = 0; byte < element; ++byte)
    for (std::size_t i = 0; i < count; ++i) plain[i * element + byte] = shuffled[byte * count + i];
  return plain;
}

Result<Bytes> without_checksum(Bytes stored) {
  if (stored.size() < kChecksumSize)
    return damaged(0, "chunk is shorter than its Fletcher-32; found " +
                          std::to_string(stored.size()) + " bytes, expected at least 4");
  const std::uint64_t end = stored.size() - kChecksumSize;
  CKPTVERIFY_TRY(const Bytes covered, slice(stored, 0, end));
  ByteReader reader(stored.subspan(end), end);
  CKPTVERIFY_TRY(const std::uint32_t expected, reader.u32());
  if (const std::uint32_t found = hdf5_fletcher32(covered); found != expected)
    return damaged(end, "Fletcher-32 is wrong; found " + hexadecimal(found) + ", expected " +
                            hexadecimal(expected));
  return covered;
}

template <std::size_t kElement, Compressor kCompressor, bool kChecksum>
Result<std::vector<std::byte>> decode(Bytes stored, std::uint64_t size) {
  Bytes covered = stored;
  if constexpr (kChecksum) {
    CKPTVERIFY_TRY(covered, without_checksum(stored));
  }
  CKPTVERIFY_TRY(std::vector<std::byte> bytes, decompress(kCompressor, covered, size));
  if constexpr (kElement > 1) return unshuffle(bytes, kElement);
  return bytes;
}

template <std::size_t kElement, Compressor kCompressor>
Decode with_checksum(bool checksum) {
  return checksum ? decode<kElement, kCompressor, true> : decode<kElement, kCompressor, false>;
}

template <std::size_t kElement>
Decode with_compressor(Compressor compressor, bool checksum) {
  if (compressor == Compressor::kZstd) return with_checksum<kElement, Compressor::kZstd>(checksum);
  if (compressor == Compressor::kDeflate)
    return with_checksum<kElement, Compressor::kDeflate>(checksum);
  return with_checksum<kElement, Compressor::kNone>(checksum);
}

}  // namespace

std::uint32_t hdf5_fletcher32(Bytes bytes) {
  // Each sum is kept under 2^16 by adding its high half to the low one, which is what tells 65535
  // from 0: only all-zero input has a zero sum.
  const auto fold = [](std::uint32_t sum) {
    return sum > 0xffff ? (sum & 0xffff) + (sum >> 16) : sum;
  };
  std::uint32_t first = 0, second = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const auto high = std::to_integer<std::uint32_t>(bytes[i]);
    const auto low = i + 1 < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + 1]) : 0U;
    first = fold(first + (high << 8 | low));
    second = fold(second + first);
  }
  return second << 16 | first;
}

std::string hdf5_chunk_checksum(Bytes chunk) {
  if (chunk.size() < kChecksumSize) return "none";
  return hexadecimal(hdf5_fletcher32(chunk.first(chunk.size() - kChecksumSize)));
}

std::string hdf5_stored_checksum(Bytes chunk) {
  if (chunk.size() < kChecksumSize) return "a checksum";
  ByteReader reader(chunk.last(kChecksumSize), chunk.size() - kChecksumSize);
  const auto stored = reader.u32();
  CKPTVERIFY_ASSERT(stored);
  return hexadecimal(*stored);
}

std::optional<Decode> hdf5_decoder(std::span<const std::uint32_t> ids, std::uint64_t element_size) {
  if (ids.empty()) return Decode{nullptr};
  const auto take = [&ids](std::uint32_t id) {
    const bool there = !ids.empty() && ids.front() == id;
    if (there) ids = ids.subspan(1);
    return there;
  };
  const bool shuffled = take(kHdf5Shuffle);
  const Compressor compressor = take(kHdf5Deflate) ? Compressor::kDeflate
                                : take(kHdf5Zstd)  ? Compressor::kZstd
                                                   : Compressor::kNone;
  const bool checksum = take(kHdf5Fletcher32);
  if (!ids.empty()) return std::nullopt;
  switch (shuffled ? element_size : 1) {
    case 1:
      return with_compressor<1>(compressor, checksum);
    case 2:
      return with_compressor<2>(compressor, checksum);
    case 4:
      return with_compressor<4>(compressor, checksum);
    case 8:
      return with_compressor<8>(compressor, checksum);
    case 16:
      return with_compressor<16>(compressor, checksum);
    default:
      return std::nullopt;
  }
}

}  // namespace ckptverify
