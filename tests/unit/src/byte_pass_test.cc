// One pass over the bytes finds what each digest finds by itself.
#include "src/byte_pass.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "src/leaves.h"
#include "tests/unit/src/memory_checkpoint.h"

namespace ckptverify {
namespace {

// A sum that depends on the order of the bytes: joined wrongly, it comes out wrong.
constexpr std::uint64_t kBase = 1'000'003;

std::uint64_t extend(std::uint64_t sum, Bytes more) {
  for (const std::byte byte : more) sum = sum * kBase + std::to_integer<std::uint64_t>(byte) + 1;
  return sum;
}

std::uint64_t join(std::uint64_t first, std::uint64_t second, std::uint64_t second_size) {
  for (std::uint64_t i = 0; i < second_size; ++i) first *= kBase;
  return first + second;
}

std::string text(std::uint64_t sum) {
  return std::to_string(sum);
}

constexpr PiecewiseChecksum kPieces = {extend, join, text};

std::string compute(Bytes bytes) {
  return text(extend(0, bytes));
}

StoredChecksum checksum_of(const Run& run) {
  return {.subject = "part",
          .run = run,
          .algorithm = "sum",
          .expected = {},
          .compute = compute,
          .entry = {},
          .piecewise = &kPieces};
}

// Beyond one segment of 16 MiB, with leaves that straddle its end and blocks' ends.
struct LargeFile {
  LargeFile() {
    state.tensor("model.small", DType::kUint8, {3}, patterned_bytes(3));
    first = state.store("model.large", patterned_bytes(17 * kLeafSize + 12));
    state.node("model.large", contiguous_tensor(DType::kFloat32, {first.size / 4}, first));
    state.tensor("model.last", DType::kUint8, {kLeafSize}, patterned_bytes(kLeafSize));
    checkpoint = state.build();
    checkpoint.checksums = {
        checksum_of(first), checksum_of({.offset = 1, .stored_size = 5, .size = 5}),
        checksum_of(
            {.offset = 4 * kLeafSize - 7, .stored_size = 13 * kLeafSize, .size = 13 * kLeafSize})};
  }

  MemoryCheckpoint state;
  Run first;
  Checkpoint checkpoint;
};

TEST(BytePass, FindsEveryDigestWhateverTheThreads) {
  const LargeFile large;
  std::vector<const Tensor*> tensors;
  for (const Entry& entry : large.checkpoint.entries) {
    tensors.push_back(&std::get<Tensor>(entry.node));
  }
  const Bytes file = large.checkpoint.files[0].bytes();
  for (const unsigned threads : {1U, 3U}) {
    std::atomic<std::uint64_t> bytes_read = 0;
    const Pass pass = pass_over_bytes(large.checkpoint, {.tensors = tensors,
                                                         .content = true,
                                                         .checksums = true,
                                                         .files = true,
                                                         .threads = {threads, &bytes_read}});
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& tensor = *tensors[i];
      const auto bytes = logical_bytes(large.checkpoint, tensor);
      EXPECT_EQ(digest_of_leaves(dtype_name(tensor.dtype), tensor.shape, logical_size(tensor),
                                 pass.leaves[i]),
                tensor_digest(dtype_name(tensor.dtype), tensor.shape, bytes->view()));
      EXPECT_FALSE(pass.contents[i].all_zero);
    }
    for (std::size_t i = 0; i < pass.checksums.size(); ++i) {
      const ckptverify::Run& run = large.checkpoint.checksums[i].run;
      ASSERT_TRUE(pass.checksums[i]);
      EXPECT_EQ(pass.checksums[i]->text, compute(file.subspan(run.offset, run.size))) << i;
      EXPECT_EQ(pass.checksums[i]->size, run.size);
    }
    EXPECT_EQ(file_digest_of_leaves(file.size(), pass.file_leaves[0]), file_digest(file));
    EXPECT_GE(bytes_read, file.size());
    EXPECT_LT(bytes_read, file.size() + 2 * kLeafSize);  // a leaf beyond a segment's end
  }
}

TEST(BytePass, ReadsOnlyWhatIsWanted) {
  const LargeFile large;
  std::atomic<std::uint64_t> bytes_read = 0;
  const Tensor& small = std::get<Tensor>(find_entry(large.checkpoint, "model.small")->node);
  const Tensor* tensors[] = {&small};
  pass_over_bytes(large.checkpoint, {.tensors = tensors, .threads = {1, &bytes_read}});
  EXPECT_LE(bytes_read, std::uint64_t{256} << 10);  // one block
}

TEST(BytePass, FindsTheFirstNumberThatIsNotFiniteAcrossBlocksAndSegments) {
  for (const std::uint64_t index :
       {std::uint64_t{0}, std::uint64_t{65537}, 16 * kLeafSize / 4 + 3}) {
    std::vector<std::byte> bytes(17 * kLeafSize, std::byte{1});
    const float infinity = std::numeric_limits<float>::infinity();
    std::memcpy(bytes.data() + index * 4, &infinity, 4);
    std::memcpy(bytes.data() + bytes.size() - 4, &infinity, 4);
    MemoryCheckpoint state;
    state.tensor("model.shift", DType::kUint8, {3}, patterned_bytes(3));  // elements cross blocks
    state.tensor("model.w", DType::kFloat32, {bytes.size() / 4}, bytes);
    const Checkpoint checkpoint = state.build();
    const Tensor* tensors[] = {&std::get<Tensor>(find_entry(checkpoint, "model.w")->node)};
    const Pass pass =
        pass_over_bytes(checkpoint, {.tensors = tensors, .content = true, .threads = {2}});
    EXPECT_EQ(pass.contents[0].not_finite_count, 2U);
    EXPECT_EQ(pass.contents[0].first_not_finite, index);
  }
}

TEST(FileDigest, IsOfLeavesAndSize) {
  const auto bytes = patterned_bytes(kLeafSize + 1);
  const std::vector<Digest> leaves = {hash_bytes(Bytes(bytes).first(kLeafSize)),
                                      hash_bytes(Bytes(bytes).last(1))};
  EXPECT_EQ(file_digest(bytes), file_digest_of_leaves(kLeafSize + 1, leaves));
  EXPECT_NE(file_digest(bytes), file_digest(Bytes(bytes).first(kLeafSize)));
}

}  // namespace
}  // namespace ckptverify
