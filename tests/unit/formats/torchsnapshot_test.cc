// torchsnapshot against a snapshot of its own, and sharded ones by hand.
#include "formats/torchsnapshot.h"

#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

std::string shard(const std::string& offset, const std::string& location) {
  return R"({"offsets": [)" + offset + R"(, 0], "sizes": [1, 2], "tensor": {"location": ")" +
         location +
         R"(", "serializer": "buffer_protocol", "dtype": "torch.uint8", "shape": [1, 2],
             "replicated": false, "byte_range": null}})";
}

/// A tensor of two rows, the first in the manifest of rank 0, the second in that of rank 1.
Result<Checkpoint> two_ranks(const std::string& second_offset) {
  const std::string manifest =
      R"({"version": "0.1.0", "world_size": 2, "manifest": {
          "0/model/w": {"type": "ShardedTensor", "shards": [)" +
      shard("0", "sharded/a") + R"(]}, "1/model/w": {"type": "ShardedTensor", "shards": [)" +
      shard(second_offset, "sharded/b") + R"(]},
          "0/progress/step": {"type": "int", "serialized_value": "5", "replicated": false,
                              "readable": null},
          "1/progress/step": {"type": "int", "serialized_value": "5", "replicated": false,
                              "readable": null}}})";
  return read_torchsnapshot(
      Source::memory_directory("snapshot", {{".snapshot_metadata", bytes_of(manifest)},
                                            {"sharded/a", bytes_of("ab")},
                                            {"sharded/b", bytes_of("cd")}}),
      formats());
}

TEST(Torchsnapshot, IsReadAsTorchReadsIt) {
  const auto source = Source::open(fixture::good("torchsnapshot/good/one_rank/snapshot"));
  ASSERT_TRUE(source);
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "torchsnapshot");
  fixture::expect_oracle(*checkpoint, fixture::good("torchsnapshot/good/one_rank/oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  EXPECT_TRUE(checkpoint->uninterpreted.empty());
  EXPECT_EQ(std::get<Value>(find_entry(*checkpoint, "progress.rate")->node), Value(0.1));
  EXPECT_EQ(std::get<Value>(find_entry(*checkpoint, "progress.done")->node), Value(false));
}

TEST(Torchsnapshot, PutsAShardedTensorTogetherFromAllRanks) {
  const auto checkpoint = two_ranks("1");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_TRUE(checkpoint->findings.empty());
  const Entry* entry = find_entry(*checkpoint, "model.w");
  ASSERT_NE(entry, nullptr);
  const auto bytes = logical_bytes(*checkpoint, std::get<Tensor>(entry->node));
  ASSERT_TRUE(bytes);
  EXPECT_EQ(as_text(bytes->view()), "abcd");
  // What is not replicated is each rank's own.
  EXPECT_NE(find_entry(*checkpoint, "progress.0.step"), nullptr);
  EXPECT_NE(find_entry(*checkpoint, "progress.1.step"), nullptr);
}

TEST(Torchsnapshot, NamesAHoleBetweenShards) {
  const auto checkpoint = two_ranks("2");
  ASSERT_TRUE(checkpoint);
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].cause->id(), "shard-missing");
  EXPECT_EQ(find_entry(*checkpoint, "model.w"), nullptr);
}

}  // namespace
}  // namespace ckptverify
