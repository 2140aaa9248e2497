// zstd frames as they must be: one, whole, of the size that was expected.
#include "formats/encoding/zstd.h"

#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::HasSubstr;

/// "hello, hello, hello, hello" by the reference tool, without a checksum.
FileBytes frame() {
  FileBytes bytes;
  for (const unsigned byte :
       {0x28U, 0xb5U, 0x2fU, 0xfdU, 0x20U, 0x1aU, 0x75U, 0x00U, 0x00U, 0x40U, 0x68U, 0x65U,
        0x6cU, 0x6cU, 0x6fU, 0x2cU, 0x20U, 0x68U, 0x01U, 0x00U, 0xf2U, 0x0aU, 0x17U})
    bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}
constexpr std::string_view kText = "hello, hello, hello, hello";

void expect_refusal(const FileBytes& bytes, std::uint64_t size, std::uint64_t offset,
                    const std::string& message) {
  const auto decoded = decode_zstd(bytes, size);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(fixture::cause_of(decoded.error()), "bitrot");
  EXPECT_EQ(decoded.error().offset, offset);
  EXPECT_THAT(decoded.error().message, HasSubstr(message));
}

TEST(Zstd, DecodesOneFrame) {
  const auto decoded = decode_zstd(frame(), kText.size());
  ASSERT_TRUE(decoded) << decoded.error().text();
  EXPECT_EQ(as_text(*decoded), kText);
}

TEST(Zstd, RefusesAnotherSizeThanExpected) {
  expect_refusal(frame(), 25, 4, "frame states another size; found 26, expected 25");
}

TEST(Zstd, RefusesBytesAfterTheFrame) {
  FileBytes bytes = frame();
  bytes.push_back(std::byte{0});
  expect_refusal(bytes, kText.size(), 23, "bytes follow the frame; found 1, expected 0");
}

TEST(Zstd, RefusesASecondFrame) {
  FileBytes bytes = frame();
  const FileBytes second = frame();
  bytes.insert(bytes.end(), second.begin(), second.end());
  expect_refusal(bytes, kText.size(), 23, "bytes follow the frame; found 23, expected 0");
}

TEST(Zstd, RefusesASkippableFrame) {
  FileBytes bytes(8);
  bytes[0] = std::byte{0x50}, bytes[1] = std::byte{0x2a}, bytes[2] = std::byte{0x4d},
  bytes[3] = std::byte{0x18};
  expect_refusal(bytes, 0, 0, "wrong magic number");
}

TEST(Zstd, RefusesTheUnusedBit) {
  FileBytes bytes = frame();
  bytes[4] |= std::byte{0x10};
  expect_refusal(bytes, kText.size(), 4, "unused bit of the frame header is set");
}

TEST(Zstd, RefusesAClaimThatTheBytesCannotHold) {
  // Without a content size: descriptor 0, window descriptor 0, one empty last block.
  FileBytes bytes = frame();
  bytes.resize(4);
  for (const unsigned byte : {0x00U, 0x00U, 0x01U, 0x00U, 0x00U})
    bytes.push_back(static_cast<std::byte>(byte));
  expect_refusal(bytes, std::uint64_t{1} << 40, 0, "found at most 393216, expected 1099511627776");
}

TEST(Zstd, RefusesEveryPrefix) {
  const FileBytes good = frame();
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode_zstd(Bytes(good).first(size), kText.size())) << size;
}

}  // namespace
}  // namespace ckptverify
