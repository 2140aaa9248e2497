#include "formats/torch_tar.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/container/tar.h"
#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

const std::string kGood = "torch-tar/good/state.pt";

Result<Checkpoint> read_bytes(std::vector<std::byte> bytes) {
  return read_torch_tar(Source::memory("file", std::move(bytes)), FormatTable({}));
}

std::vector<std::byte> good_bytes() {
  return testing::byte_vector(testing::torch_fixture_text(kGood));
}

TEST(TorchTar, AgreesWithPyTorch) {
  EXPECT_TRUE(sniff_torch_tar(Source::memory("file", good_bytes())));
  auto checkpoint = read_bytes(good_bytes());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  testing::expect_oracle(*checkpoint, kGood + ".json");
  const std::vector<std::uint64_t> sizes = {good_bytes().size()};
  EXPECT_TRUE(checkpoint->coverage.gaps(sizes).empty());
  EXPECT_TRUE(checkpoint->coverage.overlaps().empty());
  EXPECT_FALSE(testing::is_reported(*std::move(checkpoint)));
}

TEST(TorchTar, RefusesEveryCut) {
  const auto bytes = good_bytes();
  for (std::size_t size = 0; size < 5000; size += 7) {
    const auto checkpoint = read_bytes({bytes.begin(), bytes.begin() + static_cast<long>(size)});
    ASSERT_FALSE(checkpoint) << size;
    EXPECT_EQ(checkpoint.error().cause, (Cause{CauseKind::kTrunc})) << size;
  }
}

TEST(TorchTar, RecognisesNoOtherArchive) {
  auto other = good_bytes();
  other[0] = std::byte{'x'};
  EXPECT_FALSE(sniff_torch_tar(Source::memory("file", other)));
  EXPECT_FALSE(sniff_torch_tar(Source::memory("file", {})));
}

TEST(Tar, FindsBytesThatAreNotZeroWhereTheyMustBe) {
  auto padded = good_bytes();
  padded[511 + 512] = std::byte{1};  // after the first member's few bytes
  const auto padding = read_tar(padded);
  ASSERT_TRUE(padding) << padding.error().text();
  ASSERT_EQ(padding->findings.size(), 1U);
  EXPECT_EQ(padding->findings[0].cause, (Cause{CauseKind::kLayout}));
  auto trailing = good_bytes();
  trailing.back() = std::byte{1};
  const auto end = read_tar(trailing);
  ASSERT_TRUE(end) << end.error().text();
  ASSERT_EQ(end->findings.size(), 1U);
  EXPECT_EQ(end->findings[0].evidence[0].value, std::to_string(trailing.size() - 1));
}

TEST(Tar, RefusesADamagedHeader) {
  auto bytes = good_bytes();
  bytes[2] = std::byte{'x'};
  const auto tar = read_tar(bytes);
  ASSERT_FALSE(tar);
  EXPECT_EQ(tar.error().cause, (Cause{CauseKind::kBitrot}));
  EXPECT_EQ(tar.error().offset, 148U);
}

}  // namespace
}  // namespace ckptverify
