// The only file that includes the Zstandard library.
#include "formats/encoding/zstd.h"

#include <zstd.h>

#include <memory>
#include <string>

namespace ckptverify {
namespace {

// RFC 8878 section 3.1.1.2: a block decodes to at most 128 KiB and takes 3 bytes of header and 1 of
// content at least, so a frame of n bytes never holds more than this many for each 4 of them.
constexpr std::uint64_t kBlockBytesMax = 128 * 1024;
constexpr std::uint64_t kBlockStoredMin = 4;
constexpr std::uint32_t kMagic = 0xFD2FB528;
constexpr std::uint64_t kHeaderSizeMin = 6;  // magic, descriptor, window or content size
constexpr std::uint8_t kUnusedBit = 0x10;    // of the frame header descriptor, section 3.1.1.1.1.3

Error malformed(std::uint64_t offset, std::string message) {
  return Error{.message = "zstd: " + std::move(message),
               .offset = offset,
               .cause = Cause{CauseKind::kBitrot, {}}};
}

Result<void> check_header(Bytes stored, std::uint64_t size) {
  ByteReader reader(stored);
  if (stored.size() < kHeaderSizeMin)
    return malformed(0, "frame is shorter than its header; found " + std::to_string(stored.size()) +
                            ", expected at least " + std::to_string(kHeaderSizeMin));
  CKPTVERIFY_TRY(const std::uint32_t magic, reader.u32());
  if (magic != kMagic)
    return malformed(0, "wrong magic number; found " + std::to_string(magic) + ", expected " +
                            std::to_string(kMagic));
  CKPTVERIFY_TRY(const std::uint8_t descriptor, reader.u8());
  if ((descriptor & kUnusedBit) != 0)
    return malformed(4, "unused bit of the frame header is set; found 1, expected 0");
  const unsigned long long content = ZSTD_getFrameContentSize(stored.data(), stored.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) return malformed(4, "frame header is damaged");
  if (content != ZSTD_CONTENTSIZE_UNKNOWN && content != size)
    return malformed(4, "frame states another size; found " + std::to_string(content) +
                            ", expected " + std::to_string(size));
  return {};
}

Result<void> check_extent(Bytes stored, std::uint64_t size) {
  const std::size_t frame = ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  if (ZSTD_isError(frame))
    return malformed(0, std::string("frame has no end: ") + ZSTD_getErrorName(frame));
  if (frame != stored.size())
    return malformed(frame, "bytes follow the frame; found " +
                                std::to_string(stored.size() - frame) + ", expected 0");
  const std::uint64_t holds_max = (stored.size() / kBlockStoredMin + 1) * kBlockBytesMax;
  if (size > holds_max)
    return malformed(0, "frame of " + std::to_string(stored.size()) +
                            " bytes cannot hold that many; found at most " +
                            std::to_string(holds_max) + ", expected " + std::to_string(size));
  return {};
}

}  // namespace

Result<std::vector<std::byte>> decode_zstd(Bytes stored, std::uint64_t size) {
  CKPTVERIFY_TRY_VOID(check_header(stored, size));
  CKPTVERIFY_TRY_VOID(check_extent(stored, size));
  std::vector<std::byte> decoded(size);
  const std::size_t written =
      ZSTD_decompress(decoded.data(), decoded.size(), stored.data(), stored.size());
  if (ZSTD_isError(written))
    return malformed(0, std::string("frame does not decode: ") + ZSTD_getErrorName(written));
  if (written != size)
    return malformed(0, "frame decodes to another size; found " + std::to_string(written) +
                            ", expected " + std::to_string(size));
  return decoded;
}

Result<std::vector<std::byte>> decode_zstd_stream(Bytes stored, std::uint64_t size_max) {
  const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                          &ZSTD_freeDStream);
  std::vector<std::byte> decoded;
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  std::size_t wanted = 1;  // of the frame that is open; 0 between frames
  while (in.pos < in.size || wanted != 0) {
    if (decoded.size() >= size_max + kBlockBytesMax) {
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "zstd: stream decodes to too much; found more than " +
                              std::to_string(size_max) + " bytes, expected at most that"};
    }
    const std::size_t before = decoded.size();
    const std::size_t consumed = in.pos;
    decoded.resize(before + kBlockBytesMax);
    ZSTD_outBuffer out{decoded.data() + before, kBlockBytesMax, 0};
    wanted = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(wanted))
      return malformed(consumed,
                       std::string("frame does not decode: ") + ZSTD_getErrorName(wanted));
    decoded.resize(before + out.pos);
    if (out.pos == 0 && in.pos == consumed && in.pos == in.size && wanted != 0) {
      return Error{.message = "zstd: stream ends inside a frame; found " +
                              std::to_string(stored.size()) + " bytes, expected more",
                   .offset = stored.size(),
                   .cause = Cause{CauseKind::kTrunc, {}}};
    }
  }
  return decoded;
}

}  // namespace ckptverify
