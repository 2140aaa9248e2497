// Gaps, overlaps and totals, exactly.
#include "ckptverify/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace ckptverify {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

struct Claim {
  std::uint64_t offset;
  std::uint64_t size;
  const char* label;
  Owner owner = Owner::kTensor;
  std::uint32_t file = 0;
};

Coverage coverage_of(std::initializer_list<Claim> claims) {
  Coverage coverage;
  for (const Claim& claim : claims)
    coverage.own({.range = {.file = claim.file, .offset = claim.offset, .size = claim.size},
                  .owner = claim.owner,
                  .label = claim.label});
  return coverage;
}

std::vector<ByteRange> gaps(const Coverage& coverage, std::vector<std::uint64_t> sizes) {
  return coverage.gaps(sizes);
}

ByteRange range(std::uint32_t file, std::uint64_t offset, std::uint64_t size) {
  return {.file = file, .offset = offset, .size = size};
}

std::vector<std::string> overlap_labels(const Coverage& coverage) {
  std::vector<std::string> labels;
  for (const Overlap& overlap : coverage.overlaps())
    labels.push_back(overlap.first.label + "+" + overlap.second.label);
  return labels;
}

TEST(CoverageGaps, NoneWhereClaimsTileTheFileInAnyOrder) {
  const Coverage coverage = coverage_of({{8, 2, "c"}, {0, 4, "a"}, {4, 4, "b"}});
  EXPECT_THAT(gaps(coverage, {10}), IsEmpty());
  EXPECT_THAT(coverage.overlaps(), IsEmpty());
}

TEST(CoverageGaps, AtTheBeginningBetweenAndAtTheEnd) {
  const Coverage coverage = coverage_of({{2, 2, "a"}, {7, 1, "b"}});
  EXPECT_THAT(gaps(coverage, {10}), ElementsAre(range(0, 0, 2), range(0, 4, 3), range(0, 8, 2)));
}

TEST(CoverageGaps, AFileThatNobodyClaimsIsOneGap) {
  const Coverage coverage = coverage_of({{0, 5, "a", Owner::kTensor, 1}});
  EXPECT_THAT(gaps(coverage, {3, 5, 0, 4}), ElementsAre(range(0, 0, 3), range(3, 0, 4)));
}

TEST(CoverageGaps, AClaimInsideAnotherHidesNoGap) {
  const Coverage coverage = coverage_of({{0, 8, "a"}, {1, 2, "b"}, {9, 1, "c"}});
  EXPECT_THAT(gaps(coverage, {10}), ElementsAre(range(0, 8, 1)));
}

TEST(CoverageGaps, AClaimBeyondTheEndMakesNone) {
  EXPECT_THAT(gaps(coverage_of({{0, kMax, "a"}}), {10}), IsEmpty());
  EXPECT_THAT(gaps(coverage_of({{20, 5, "a"}}), {10}), ElementsAre(range(0, 0, 10)));
  EXPECT_THAT(gaps(coverage_of({{4, kMax, "a"}}), {10}), ElementsAre(range(0, 0, 4)));
}

TEST(CoverageOverlaps, OneByteIsEnough) {
  EXPECT_THAT(overlap_labels(coverage_of({{0, 5, "a"}, {4, 4, "b"}})), ElementsAre("a+b"));
  EXPECT_THAT(overlap_labels(coverage_of({{0, 4, "a"}, {4, 4, "b"}})), IsEmpty());
}

TEST(CoverageOverlaps, ALongClaimIsHeldAgainstAllThatBeginInIt) {
  EXPECT_THAT(
      overlap_labels(coverage_of({{0, 100, "a"}, {10, 2, "b"}, {50, 60, "c"}, {105, 2, "d"}})),
      ElementsAre("a+b", "a+c", "c+d"));
}

TEST(CoverageOverlaps, OffsetsOfTwoFilesDoNotMeet) {
  const Coverage coverage =
      coverage_of({{0, 9, "a", Owner::kTensor, 0}, {0, 9, "b", Owner::kTensor, 1}});
  EXPECT_THAT(overlap_labels(coverage), IsEmpty());
}

TEST(CoverageOverlaps, TheSameClaimTwiceIsOneClaim) {
  const Coverage coverage = coverage_of({{0, 4, "a"}, {0, 4, "a"}});
  EXPECT_THAT(coverage.overlaps(), IsEmpty());
  EXPECT_EQ(coverage.sorted().size(), 1U);
  EXPECT_EQ(coverage.size(Owner::kTensor), 4U);
}

TEST(CoverageOverlaps, TheSameRangeUnderAnotherNameOrOwnerIsNot) {
  EXPECT_THAT(overlap_labels(coverage_of({{0, 4, "a"}, {0, 4, "b"}})), ElementsAre("a+b"));
  EXPECT_EQ(coverage_of({{0, 4, "a"}, {0, 4, "a", Owner::kPadding}}).overlaps().size(), 1U);
}

TEST(CoverageOwn, EmptyRangesOwnNothing) {
  const Coverage coverage = coverage_of({{4, 0, "a"}, {0, 8, "b"}});
  EXPECT_EQ(coverage.sorted().size(), 1U);
  EXPECT_THAT(coverage.overlaps(), IsEmpty());
}

TEST(CoverageSize, CountsEachByteOfAnOwnerOnce) {
  const Coverage coverage = coverage_of({{0, 10, "a"},
                                         {5, 10, "b"},
                                         {6, 2, "c"},
                                         {20, 3, "d", Owner::kPadding},
                                         {0, 7, "e", Owner::kTensor, 1}});
  EXPECT_EQ(coverage.size(Owner::kTensor), 22U);
  EXPECT_EQ(coverage.size(Owner::kPadding), 3U);
  EXPECT_EQ(coverage.size(Owner::kFraming), 0U);
}

TEST(CoverageAbsorb, MovesTheFilesOfTheOther) {
  Coverage whole = coverage_of({{0, 4, "a"}});
  whole.absorb(coverage_of({{0, 2, "b"}, {0, 3, "c", Owner::kTensor, 1}}), 1);
  EXPECT_THAT(gaps(whole, {4, 2, 3}), IsEmpty());
  EXPECT_EQ(whole.sorted().back().range, range(2, 0, 3));
}

TEST(OwnerName, IsLowerCase) {
  EXPECT_EQ(owner_name(Owner::kTensor), "tensor");
  EXPECT_EQ(owner_name(Owner::kUnverifiable), "unverifiable");
}

}  // namespace
}  // namespace ckptverify
