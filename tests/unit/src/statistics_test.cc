// What the elements of a tensor are said to be like.
#include "ckptverify/statistics.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/unit/src/memory_checkpoint.h"

namespace ckptverify {
namespace {

Statistics statistics_of(DType dtype, const std::vector<std::byte>& bytes) {
  MemoryCheckpoint state;
  state.tensor("model.w", dtype, {bytes.size() / dtype_size(dtype)}, bytes);
  const Checkpoint checkpoint = state.build();
  const auto result = statistics(checkpoint, std::get<Tensor>(checkpoint.entries.at(0).node), {2});
  EXPECT_TRUE(result);
  return *result;
}

TEST(Statistics, LeaveWhatIsNotFiniteOutOfExtremesAndMean) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Statistics found = statistics_of(
      DType::kFloat32,
      bytes_of<float>({1, -3, 0, infinity, std::numeric_limits<float>::quiet_NaN(), 4}));
  EXPECT_EQ(found.count, 6U);
  EXPECT_EQ(found.nan, 1U);
  EXPECT_EQ(found.infinite, 1U);
  EXPECT_EQ(found.zero, 1U);
  EXPECT_EQ(found.minimum, -3);
  EXPECT_EQ(found.maximum, 4);
  EXPECT_EQ(found.mean, 0.5);
}

TEST(Statistics, KnowSmallAndPackedTypes) {
  // bfloat16 1.5 and -2; float4 pairs: 0x72 is 1.0 in the low bits and 6.0 in the high ones.
  const Statistics half =
      statistics_of(DType::kBfloat16, bytes_of<std::uint16_t>({0x3fc0, 0xc000}));
  EXPECT_EQ(half.minimum, -2);
  EXPECT_EQ(half.maximum, 1.5);
  const Statistics packed = statistics_of(DType::kFloat4E2m1fnX2, bytes_of<std::uint8_t>({0x72}));
  EXPECT_EQ(packed.count, 2U);
  EXPECT_EQ(packed.minimum, 1);
  EXPECT_EQ(packed.maximum, 6);
  EXPECT_EQ(statistics_of(DType::kInt16, bytes_of<std::int16_t>({-5, 7})).minimum, -5);
}

TEST(Statistics, HaveNoExtremesWhereNothingIsFinite) {
  const Statistics found =
      statistics_of(DType::kFloat64, bytes_of<double>({std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_EQ(found.nan, 1U);
  EXPECT_FALSE(found.minimum || found.maximum || found.mean);
}

TEST(Statistics, JoinTheRangesOfALargeTensor) {
  std::vector<std::byte> bytes((std::size_t{4} << 20) + 8);
  bytes.back() = std::byte{3};
  const Statistics found = statistics_of(DType::kUint8, bytes);
  EXPECT_EQ(found.count, bytes.size());
  EXPECT_EQ(found.maximum, 3);
  EXPECT_EQ(found.zero, bytes.size() - 1);
}

}  // namespace
}  // namespace ckptverify
