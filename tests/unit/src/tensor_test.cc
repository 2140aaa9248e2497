// Element types, strides and bounds.
#include "ckptverify/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace ckptverify {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

Run plain_run(std::uint64_t size) {
  return {.stored_size = size, .size = size};
}

Tensor strided(std::vector<std::uint64_t> shape, std::vector<std::int64_t> strides,
               std::uint64_t first_element, std::uint64_t bytes) {
  Tensor tensor = contiguous_tensor(DType::kFloat32, std::move(shape), plain_run(bytes));
  tensor.pieces[0].strides = std::move(strides);
  tensor.pieces[0].first_element = first_element;
  return tensor;
}

TEST(DType, NamesAreReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::kBits4x2); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_named(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_named("float4_e2m1fn_x2"), DType::kFloat4E2m1fnX2);
  EXPECT_EQ(dtype_named("float8_e4m3fn"), DType::kFloat8E4m3fn);
  EXPECT_EQ(dtype_named("Float32"), std::nullopt);
}

TEST(DType, SizesAreBytesOfAnElement) {
  EXPECT_EQ(dtype_size(DType::kBool), 1U);
  EXPECT_EQ(dtype_size(DType::kBfloat16), 2U);
  EXPECT_EQ(dtype_size(DType::kComplex32), 4U);
  EXPECT_EQ(dtype_size(DType::kComplex128), 16U);
  EXPECT_EQ(dtype_size(DType::kQint32), 4U);
  EXPECT_EQ(dtype_size(DType::kFloat8E8m0fnu), 1U);
}

TEST(ContiguousStrides, AreRowMajor) {
  EXPECT_THAT(contiguous_strides(std::vector<std::uint64_t>{2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(contiguous_strides(std::vector<std::uint64_t>{2, 0, 4}), ElementsAre(4, 4, 1));
  EXPECT_TRUE(contiguous_strides({}).empty());
}

TEST(ContiguousStrides, OfAnImpossibleShapeDoNotWrapAround) {
  const auto strides = contiguous_strides(std::vector<std::uint64_t>{2, kMax, kMax});
  EXPECT_EQ(strides[0], std::numeric_limits<std::int64_t>::max());
}

TEST(CheckBounds, AcceptsWhatFillsItsRunExactly) {
  EXPECT_TRUE(check_bounds(contiguous_tensor(DType::kFloat32, {2, 3}, plain_run(24))));
  EXPECT_TRUE(check_bounds(contiguous_tensor(DType::kFloat32, {}, plain_run(4))));
  EXPECT_TRUE(check_bounds(contiguous_tensor(DType::kFloat32, {0, 3}, plain_run(0))));
}

TEST(CheckBounds, RefusesOneByteTooFew) {
  const auto bounds = check_bounds(contiguous_tensor(DType::kFloat32, {2, 3}, plain_run(23)));
  ASSERT_FALSE(bounds);
  EXPECT_THAT(bounds.error().message,
              HasSubstr("found elements 0 to 5, expected 0 to less than 5"));
}

TEST(CheckBounds, CountsTheFirstElement) {
  EXPECT_TRUE(check_bounds(strided({2}, {1}, 1, 12)));
  EXPECT_FALSE(check_bounds(strided({2}, {1}, 2, 12)));
  EXPECT_FALSE(check_bounds(strided({2}, {1}, kMax, 12)));
}

TEST(CheckBounds, NegativeStridesMustNotReachBelowTheRun) {
  EXPECT_TRUE(check_bounds(strided({3}, {-1}, 2, 12)));
  EXPECT_FALSE(check_bounds(strided({3}, {-1}, 1, 12)));
}

TEST(CheckBounds, HugeStridesDoNotOverflow) {
  EXPECT_FALSE(check_bounds(strided({2, 2}, {INT64_MAX, INT64_MAX}, 0, 16)));
  EXPECT_FALSE(check_bounds(strided({2, 2}, {INT64_MIN, INT64_MIN}, 0, 16)));
  EXPECT_FALSE(check_bounds(strided({kMax / 4}, {INT64_MAX}, kMax, 16)));
  // One cannot make up for the other: each is a place that is reached.
  EXPECT_FALSE(check_bounds(strided({2, 2}, {INT64_MAX, -INT64_MAX}, 0, 16)));
}

TEST(CheckBounds, AStrideOfASingleElementIsNeverTaken) {
  EXPECT_TRUE(check_bounds(strided({1, 4}, {INT64_MAX, 1}, 0, 16)));
}

TEST(CheckBounds, RefusesAShapeBeyond64Bits) {
  EXPECT_FALSE(check_bounds(strided({kMax, 2}, {0, 0}, 0, 4)));
  EXPECT_FALSE(check_bounds(strided({kMax / 2}, {0}, 0, 4)));  // bytes, not elements
}

TEST(CheckBounds, PieceMustLieInTheWhole) {
  Tensor tensor = contiguous_tensor(DType::kInt8, {2, 2}, plain_run(4));
  tensor.pieces[0].offset = {1, 0};
  EXPECT_FALSE(check_bounds(tensor));
  tensor.pieces[0].offset = {kMax, 0};
  EXPECT_FALSE(check_bounds(tensor));
  tensor.pieces[0].offset = {0};
  EXPECT_FALSE(check_bounds(tensor));
}

TEST(CheckBounds, PlainRunsHaveOneSize) {
  Tensor tensor = contiguous_tensor(DType::kInt8, {4}, plain_run(4));
  tensor.pieces[0].run.stored_size = 3;
  EXPECT_FALSE(check_bounds(tensor));
}

TEST(CheckBounds, OwnedRunsHaveTheirBytes) {
  Tensor tensor = contiguous_tensor(DType::kInt8, {4}, plain_run(4));
  tensor.pieces[0].run.owned = std::make_shared<const std::vector<std::byte>>(4);
  EXPECT_TRUE(check_bounds(tensor));
  tensor.pieces[0].run.offset = 1;
  EXPECT_FALSE(check_bounds(tensor));
}

TEST(LogicalSize, IsElementsTimesTheirSize) {
  EXPECT_EQ(logical_size(contiguous_tensor(DType::kComplex64, {2, 3}, {})), 48U);
  EXPECT_EQ(logical_size(contiguous_tensor(DType::kFloat64, {}, {})), 8U);
  EXPECT_EQ(logical_size(contiguous_tensor(DType::kFloat64, {kMax, 0}, {})), 0U);
}

TEST(LogicalSize, BeyondAllMemoryStaysThere) {
  EXPECT_EQ(logical_size(contiguous_tensor(DType::kFloat64, {kMax / 4}, {})), kMax);
}

}  // namespace
}  // namespace ckptverify
