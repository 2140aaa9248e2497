// CRC-32 by pieces is CRC-32.
#include <gtest/gtest.h>

#include "formats/encoding/deflate.h"

namespace ckptverify {
namespace {

TEST(Crc32, JoinsPiecesOfAnySize) {
  std::vector<std::byte> bytes(70'001);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
  const Bytes all(bytes);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, bytes.size()}) {
    const std::uint64_t first = kCrc32Pieces.extend(0, all.first(cut));
    const std::uint64_t second = kCrc32Pieces.extend(0, all.subspan(cut));
    EXPECT_EQ(kCrc32Pieces.join(first, second, all.size() - cut), crc32(all)) << cut;
    EXPECT_EQ(kCrc32Pieces.extend(first, all.subspan(cut)), crc32(all)) << cut;
  }
  EXPECT_EQ(kCrc32Pieces.text(kCrc32Pieces.extend(0, as_bytes("123456789"))), "cbf43926");
  EXPECT_EQ(kCrc32Pieces.text(0), crc32_of_stored({}));
}

}  // namespace
}  // namespace ckptverify
