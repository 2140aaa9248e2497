// Logical bytes against bytes made by hand: strides, pieces, byte order, views, decoders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ckptverify/checkpoint.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;

/// A checkpoint of one file.
Checkpoint checkpoint_of(std::string_view content) {
  const Bytes bytes = as_bytes(content);
  Checkpoint checkpoint;
  checkpoint.files.push_back(Source::memory("test", {bytes.begin(), bytes.end()}));
  return checkpoint;
}

Run run_of(std::uint64_t offset, std::uint64_t size) {
  return {.offset = offset, .stored_size = size, .size = size};
}

Tensor strided(DType dtype, std::vector<std::uint64_t> shape, std::vector<std::int64_t> strides,
               std::uint64_t first_element, Run run) {
  Tensor tensor = contiguous_tensor(dtype, std::move(shape), std::move(run));
  tensor.pieces[0].strides = std::move(strides);
  tensor.pieces[0].first_element = first_element;
  return tensor;
}

/// The logical bytes as text, or the error's.
std::string gathered(const Checkpoint& checkpoint, const Tensor& tensor) {
  const auto bytes = logical_bytes(checkpoint, tensor);
  return bytes ? std::string(as_text(bytes->view())) : "error: " + bytes.error().text();
}

TEST(LogicalBytes, OfOneContiguousPieceAreAViewOfTheFile) {
  const Checkpoint checkpoint = checkpoint_of("..abcdef");
  const auto bytes = logical_bytes(checkpoint, contiguous_tensor(DType::kInt16, {3}, run_of(2, 6)));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->view().data(), checkpoint.files[0].bytes().data() + 2);
  EXPECT_EQ(as_text(bytes->view()), "abcdef");
}

TEST(LogicalBytes, OfASliceAtAnOffsetAreAViewToo) {
  const Checkpoint checkpoint = checkpoint_of("abcdefgh");
  const auto bytes = logical_bytes(checkpoint, strided(DType::kInt16, {2}, {1}, 1, run_of(0, 8)));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->view().data(), checkpoint.files[0].bytes().data() + 2);
  EXPECT_EQ(as_text(bytes->view()), "cdef");
}

TEST(LogicalBytes, OfATransposedMatrixAreRowMajor) {
  const Checkpoint checkpoint = checkpoint_of("abcdef");  // [[a b c] [d e f]]
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {3, 2}, {1, 3}, 0, run_of(0, 6))), "adbecf");
}

TEST(LogicalBytes, OfAPermutedCubeKeepElementsWhole) {
  const Checkpoint checkpoint = checkpoint_of("aAbBcCdDeEfFgGhH");  // shape 2,2,2
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt16, {2, 2, 2}, {1, 4, 2}, 0, run_of(0, 16))),
            "aAcCeEgGbBdDfFhH");
}

TEST(LogicalBytes, OfAColumnTakeEveryThirdElement) {
  const Checkpoint checkpoint = checkpoint_of("abcdef");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {2}, {3}, 1, run_of(0, 6))), "be");
}

TEST(LogicalBytes, OfAnExpandedVectorRepeatIt) {
  const Checkpoint checkpoint = checkpoint_of("abc");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {2, 3}, {0, 1}, 0, run_of(0, 3))), "abcabc");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {3, 2}, {1, 0}, 0, run_of(0, 3))), "aabbcc");
}

TEST(LogicalBytes, OfAReversedVectorRunBackwards) {
  const Checkpoint checkpoint = checkpoint_of("abc");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {3}, {-1}, 2, run_of(0, 3))), "cba");
}

TEST(LogicalBytes, IgnoreTheStridesOfSingleElements) {
  const Checkpoint checkpoint = checkpoint_of("abcdef");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {1, 3, 1, 2}, {INT64_MAX, 1, INT64_MIN, 3},
                                         0, run_of(0, 6))),
            "adbecf");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {1, 6}, {INT64_MAX, 1}, 0, run_of(0, 6))),
            "abcdef");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kInt8, {2, 1}, {3, 77}, 0, run_of(0, 6))), "ad");
}

TEST(LogicalBytes, OfEverySizeOfElement) {
  const Checkpoint checkpoint = checkpoint_of("0123456789abcdefghijklmnopqrstuv");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kFloat32, {2}, {2}, 0, run_of(0, 32))), "012389ab");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kFloat64, {2}, {2}, 0, run_of(0, 32))),
            "01234567ghijklmn");
  EXPECT_EQ(gathered(checkpoint, strided(DType::kComplex128, {2}, {-1}, 1, run_of(0, 32))),
            "ghijklmnopqrstuv0123456789abcdef");
}

TEST(LogicalBytes, OfAScalarAndOfNothing) {
  const Checkpoint checkpoint = checkpoint_of("abcd");
  EXPECT_EQ(gathered(checkpoint, contiguous_tensor(DType::kInt8, {}, run_of(1, 1))), "b");
  EXPECT_EQ(gathered(checkpoint, contiguous_tensor(DType::kInt8, {3, 0}, run_of(4, 0))), "");
}

TEST(LogicalBytes, OfBigEndianElementsAreTurnedRound) {
  const Checkpoint checkpoint = checkpoint_of("abcdefgh");
  Tensor tensor = contiguous_tensor(DType::kInt32, {2}, run_of(0, 8));
  tensor.byte_order = ByteOrder::kBig;
  EXPECT_EQ(gathered(checkpoint, tensor), "dcbahgfe");
  tensor = contiguous_tensor(DType::kComplex64, {1}, run_of(0, 8));
  tensor.byte_order = ByteOrder::kBig;
  EXPECT_EQ(gathered(checkpoint, tensor), "dcbahgfe");  // real and imaginary keep their places
  tensor = contiguous_tensor(DType::kInt8, {8}, run_of(0, 8));
  tensor.byte_order = ByteOrder::kBig;
  EXPECT_EQ(gathered(checkpoint, tensor), "abcdefgh");
}

TEST(LogicalBytes, OfAConjugateViewFlipTheImaginarySigns) {
  const Checkpoint checkpoint = checkpoint_of(std::string_view("\0\0\1\0\0\0\2\x80", 8));
  Tensor tensor = contiguous_tensor(DType::kComplex32, {2}, run_of(0, 8));
  tensor.conjugate = true;
  EXPECT_EQ(gathered(checkpoint, tensor), std::string_view("\0\0\1\x80\0\0\2\0", 8));
}

TEST(LogicalBytes, OfANegativeViewFlipAllSigns) {
  const Checkpoint checkpoint = checkpoint_of(std::string_view("\0\0\1\0\0\0\2\x80", 8));
  Tensor tensor = contiguous_tensor(DType::kFloat16, {4}, run_of(0, 8));
  tensor.negative = true;
  EXPECT_EQ(gathered(checkpoint, tensor), std::string_view("\0\x80\1\x80\0\x80\2\0", 8));
  tensor = contiguous_tensor(DType::kComplex32, {2}, run_of(0, 8));
  tensor.negative = true;
  tensor.conjugate = true;
  EXPECT_EQ(gathered(checkpoint, tensor), std::string_view("\0\x80\1\0\0\x80\2\x80", 8));
}

TEST(LogicalBytes, OfABigEndianNegativeViewFlipTheRightByte) {
  const Checkpoint checkpoint = checkpoint_of(std::string_view("\x01\x02\x03\x04", 4));
  Tensor tensor = contiguous_tensor(DType::kFloat32, {1}, run_of(0, 4));
  tensor.negative = true;
  tensor.byte_order = ByteOrder::kBig;
  EXPECT_EQ(gathered(checkpoint, tensor), "\x04\x03\x02\x81");
}

TEST(LogicalBytes, OfANegatedIntegerAreUnsupported) {
  Tensor tensor = contiguous_tensor(DType::kInt32, {1}, run_of(0, 4));
  tensor.negative = true;
  const auto bytes = logical_bytes(checkpoint_of("abcd"), tensor);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().kind, ErrorKind::kUnsupported);
}

Piece piece(std::vector<std::uint64_t> offset, std::vector<std::uint64_t> shape, Run run) {
  return {.offset = std::move(offset),
          .shape = shape,
          .strides = contiguous_strides(shape),
          .run = std::move(run)};
}

TEST(LogicalBytes, OfTwoPiecesAreAssembledByColumnsAndByRows) {
  Checkpoint checkpoint = checkpoint_of("abcd");
  const Bytes second = as_bytes("..wxyz");
  checkpoint.files.push_back(Source::memory("second", {second.begin(), second.end()}));
  auto other = run_of(2, 4);
  other.file = 1;
  Tensor tensor{.dtype = DType::kInt8, .shape = {2, 4}, .pieces = {}};
  tensor.pieces = {piece({0, 0}, {2, 2}, run_of(0, 4)), piece({0, 2}, {2, 2}, other)};
  EXPECT_EQ(gathered(checkpoint, tensor), "abwxcdyz");
  tensor.shape = {4, 2};
  tensor.pieces = {piece({2, 0}, {2, 2}, run_of(0, 4)), piece({0, 0}, {2, 2}, other)};
  EXPECT_EQ(gathered(checkpoint, tensor), "wxyzabcd");
}

TEST(LogicalBytes, OfFlatRangesAreAssembledInRowMajorOrder) {
  const Checkpoint checkpoint = checkpoint_of("abcdef");
  Tensor tensor{.dtype = DType::kInt8, .shape = {2, 3}, .pieces = {}, .flattened = true};
  // The second range begins inside the first row and ends inside the second.
  tensor.pieces = {piece({4}, {2}, run_of(0, 2)), piece({0}, {1}, run_of(2, 1)),
                   piece({1}, {3}, run_of(3, 3))};
  EXPECT_EQ(gathered(checkpoint, tensor), "cdefab");
  tensor.pieces = {piece({0}, {6}, run_of(0, 6))};
  EXPECT_EQ(gathered(checkpoint, tensor), "abcdef");
}

TEST(LogicalBytes, OfFlatRangesBeyondAllElementsAreAnError) {
  const Checkpoint checkpoint = checkpoint_of("abcdef");
  Tensor tensor{.dtype = DType::kInt8, .shape = {2, 2}, .pieces = {}, .flattened = true};
  tensor.pieces = {piece({3}, {2}, run_of(0, 2))};
  EXPECT_THAT(gathered(checkpoint, tensor), HasSubstr("found an end of 5, expected at most 4"));
  tensor.pieces = {piece({0, 0}, {2, 2}, run_of(0, 4))};
  EXPECT_THAT(gathered(checkpoint, tensor), HasSubstr("another rank; found 2, expected 1"));
  tensor.pieces = {piece({0}, {3}, run_of(0, 3))};
  EXPECT_THAT(gathered(checkpoint, tensor), HasSubstr("found 3 elements, expected 4"));
}

TEST(LogicalBytes, OfPiecesWithAnEmptyOne) {
  const Checkpoint checkpoint = checkpoint_of("abcd");
  Tensor tensor{.dtype = DType::kInt8, .shape = {4}, .pieces = {}};
  tensor.pieces = {piece({4}, {0}, run_of(4, 0)), piece({0}, {4}, run_of(0, 4))};
  EXPECT_EQ(gathered(checkpoint, tensor), "abcd");
}

TEST(LogicalBytes, OfPiecesThatLeaveAHoleAreAnError) {
  const Checkpoint checkpoint = checkpoint_of("abcd");
  Tensor tensor{.dtype = DType::kInt8, .shape = {5}, .pieces = {}};
  tensor.pieces = {piece({0}, {2}, run_of(0, 2)), piece({2}, {2}, run_of(2, 2))};
  EXPECT_THAT(gathered(checkpoint, tensor), HasSubstr("found 4 elements, expected 5"));
  tensor.pieces.clear();
  EXPECT_THAT(gathered(checkpoint, tensor), HasSubstr("found 0 elements, expected 5"));
}

Result<std::vector<std::byte>> reversed(Bytes stored, std::uint64_t size) {
  std::vector<std::byte> bytes(stored.begin(), stored.end());
  std::reverse(bytes.begin(), bytes.end());
  bytes.resize(static_cast<std::size_t>(size));
  return bytes;
}

Result<std::vector<std::byte>> one_too_few(Bytes, std::uint64_t size) {
  return std::vector<std::byte>(static_cast<std::size_t>(size - 1));
}

Result<std::vector<std::byte>> broken(Bytes, std::uint64_t) {
  return Error{.message = "broken"};
}

TEST(LogicalBytes, OfAnEncodedPieceAreDecoded) {
  const Checkpoint checkpoint = checkpoint_of("abcd");
  Tensor tensor = contiguous_tensor(DType::kInt8, {4}, run_of(0, 4));
  tensor.pieces[0].run.decode = reversed;
  EXPECT_EQ(gathered(checkpoint, tensor), "dcba");
  // A part of a decoded chunk: the second row of two.
  tensor = strided(DType::kInt8, {2}, {1}, 2, run_of(0, 4));
  tensor.pieces[0].run.decode = reversed;
  EXPECT_EQ(gathered(checkpoint, tensor), "ba");
}

TEST(LogicalBytes, ADecodersWordIsNotTakenForItsSize) {
  const Checkpoint checkpoint = checkpoint_of("abcd");
  Tensor tensor = contiguous_tensor(DType::kInt8, {4}, run_of(0, 4));
  tensor.pieces[0].run.decode = one_too_few;
  EXPECT_THAT(gathered(checkpoint, tensor), HasSubstr("found 3 bytes, expected 4"));
  tensor.pieces[0].run.decode = broken;
  EXPECT_EQ(gathered(checkpoint, tensor), "error: test: broken");
}

TEST(LogicalBytes, OfOwnedBytesNeedNoFile) {
  auto run = run_of(1, 3);
  run.file = 9;
  run.owned = std::make_shared<const std::vector<std::byte>>(
      std::vector<std::byte>{std::byte{'x'}, std::byte{'a'}, std::byte{'b'}, std::byte{'c'}});
  const Tensor tensor = contiguous_tensor(DType::kInt8, {3}, run);
  EXPECT_EQ(gathered(Checkpoint(), tensor), "abc");
}

TEST(LogicalBytes, OutsideOfTheFileAreAnErrorThatNamesIt) {
  const Checkpoint checkpoint = checkpoint_of("abcd");
  EXPECT_THAT(gathered(checkpoint, contiguous_tensor(DType::kInt8, {4}, run_of(1, 4))),
              HasSubstr("error: test: byte 1: "));
  auto run = run_of(0, 4);
  run.file = 1;
  EXPECT_THAT(gathered(checkpoint, contiguous_tensor(DType::kInt8, {4}, run)),
              HasSubstr("found number 1, expected less than 1"));
  EXPECT_THAT(gathered(checkpoint, strided(DType::kInt8, {4}, {2}, 0, run_of(0, 4))),
              HasSubstr("leave its storage"));
}

TEST(LogicalBytes, AnExpandedBombIsRefusedBeforeItIsAllocated) {
  const auto bytes = logical_bytes(
      checkpoint_of("abcd"), strided(DType::kInt8, {std::uint64_t{1} << 31}, {0}, 0, run_of(0, 4)));
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().kind, ErrorKind::kUnsupported);
}

TEST(LogicalBytes, OfATensorWithoutDataAreAnError) {
  Tensor tensor{.dtype = DType::kInt8, .shape = {4}, .pieces = {}, .absent = true};
  EXPECT_FALSE(logical_bytes(Checkpoint(), tensor));
}

TEST(LogicalBytes, StayValidWhenMoved) {
  const Checkpoint checkpoint = checkpoint_of("abcdef");
  auto bytes = logical_bytes(checkpoint, strided(DType::kInt8, {3, 2}, {1, 3}, 0, run_of(0, 6)));
  ASSERT_TRUE(bytes);
  const LogicalBytes moved = *std::move(bytes);
  EXPECT_EQ(as_text(moved.view()), "adbecf");
}

}  // namespace
}  // namespace ckptverify
