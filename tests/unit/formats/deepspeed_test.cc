// DeepSpeed against its own checkpoints and its own way to put them together, and the arithmetic of
// partitions by hand.
#include "formats/deepspeed.h"

#include "formats/container/deepspeed_names.h"
#include "formats/container/deepspeed_partitions.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Checkpoint read_save(const std::string& name) {
  const auto source = Source::open(fixture::good("deepspeed/good/" + name + "/save"));
  EXPECT_TRUE(source);
  auto checkpoint = formats().read(*source);
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  return *std::move(checkpoint);
}

Digest component_digest(const Checkpoint& checkpoint, std::string_view label) {
  const auto print = fingerprint(checkpoint, Threads{1});
  EXPECT_TRUE(print);
  const auto found = print->components.find(std::string(label));
  EXPECT_NE(found, print->components.end()) << label;
  return found == print->components.end() ? Digest{} : found->second.all;
}

class DeepspeedSaves : public ::testing::TestWithParam<std::string> {};

TEST_P(DeepspeedSaves, GiveTheWeightsOfDeepspeedsOwnScript) {
  const Checkpoint checkpoint = read_save(GetParam());
  EXPECT_EQ(checkpoint.format, "deepspeed");
  fixture::expect_oracle(checkpoint,
                         fixture::good("deepspeed/good/" + GetParam() + "/oracle.json"));
  fixture::expect_whole_coverage(checkpoint);
  for (const Finding& finding : checkpoint.findings)
    EXPECT_NE(finding.status, Status::kFail) << finding.message;
  EXPECT_THAT(checkpoint.uninterpreted, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, DeepspeedSaves,
                         ::testing::Values("zero1_w1", "zero1_w2", "zero2_w1", "zero2_w2",
                                           "zero2_w2_stream", "zero3_w1", "zero3_w2"));

TEST(Deepspeed, OneStateHasOneFingerprintWhateverTheWorldSize) {
  // Stage 1 in 32 bits sums gradients here where one process averages: the moments are other ones.
  for (const std::string stage : {"zero2", "zero3"}) {
    const Checkpoint one = read_save(stage + "_w1");
    const Checkpoint two = read_save(stage + "_w2");
    for (const std::string_view component : {"model", "optimizer", "scheduler"})
      EXPECT_EQ(component_digest(one, component), component_digest(two, component))
          << stage << " " << component;
  }
}

TEST(Deepspeed, OneStateHasOneFingerprintWhateverItsFiles) {
  const Checkpoint archives = read_save("zero2_w2");
  const Checkpoint streams = read_save("zero2_w2_stream");
  for (const std::string_view component : {"model", "optimizer", "scheduler", "step", "other"})
    EXPECT_EQ(component_digest(archives, component), component_digest(streams, component))
        << component;
}

TEST(Deepspeed, PutsAUniversalCheckpointsFilesUnderTheSamePaths) {
  const auto source = Source::open(fixture::good("deepspeed/good/universal/save"));
  ASSERT_TRUE(source);
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "deepspeed-universal");
  EXPECT_THAT(checkpoint->findings,
              ::testing::Each(::testing::Field(&Finding::status, ::testing::Ne(Status::kFail))));
  fixture::expect_oracle(*checkpoint, fixture::good("deepspeed/good/universal/oracle.json"));
  // What it was made from.
  const Checkpoint ranks = read_save("zero1_w2");
  const auto digest = [](const Checkpoint& from, std::string_view path) {
    const auto bytes = logical_bytes(from, std::get<Tensor>(find_entry(from, path)->node));
    return sha256_hex(bytes->view());
  };
  for (const std::string_view path :
       {"optimizer.exp_avg.hidden.weight", "optimizer.fp32.back.bias"})
    EXPECT_EQ(digest(*checkpoint, path), digest(ranks, path)) << path;
}

TEST(Deepspeed, NamesASharedParameterAsAnAlias) {
  const Checkpoint checkpoint = read_save("zero2_w2");
  const Entry* head = find_entry(checkpoint, "optimizer.fp32.head.weight");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->alias_of, "optimizer.fp32.embed.weight");
}

TEST(DeepspeedNames, AreReadByTheirNumbers) {
  const auto optimizer = deepspeed_file("bf16_zero_pp_rank_12_mp_rank_03_optim_states.pt");
  ASSERT_TRUE(optimizer);
  EXPECT_EQ(optimizer->kind, DeepspeedKind::kOptimizer);
  EXPECT_EQ(optimizer->data_rank, 12U);
  EXPECT_EQ(optimizer->model_rank, 3U);
  const auto layer = deepspeed_file("layer_07-model_01-model_states.pt");
  ASSERT_TRUE(layer);
  EXPECT_EQ(layer->kind, DeepspeedKind::kLayer);
  EXPECT_EQ(layer->part, "layer_07");
  EXPECT_EQ(layer->model_rank, 1U);
  const auto expert = deepspeed_file("layer_2_expert_9_mp_rank_00_model_states.pt");
  ASSERT_TRUE(expert);
  EXPECT_EQ(expert->part, "layer_2.expert_9");
  EXPECT_TRUE(deepspeed_file("zero_pp_rank_0_mp_rank_00optim_states.pt"));
  EXPECT_FALSE(deepspeed_file("zero_pp_rank_x_mp_rank_00_optim_states.pt"));
  EXPECT_FALSE(deepspeed_file("mp_rank_00_model_states.pt.tmp"));
  EXPECT_FALSE(deepspeed_file("mp_rank_99999999999_model_states.pt"));
}

Tensor flat(std::uint64_t size) {
  return contiguous_tensor(DType::kInt8, {size}, {.stored_size = size, .size = size});
}

DeepspeedLayout layout_of(std::vector<std::vector<DeepspeedParameter>> groups) {
  return {.groups = std::move(groups), .frozen = {}, .shared = {}};
}

TEST(Partitions, OfStages1And2AreCutFromTheRanksVectorsEndToEnd) {
  const auto layout = layout_of({{{"a", {2, 2}, 4}, {"b", {3}, 3}}});
  const auto joined = join_partitions(ZeroStage::kOptimizer, {{flat(3)}, {flat(5)}}, layout);
  ASSERT_TRUE(joined) << joined.error().text();
  ASSERT_EQ(joined->size(), 2U);
  const Tensor& a = (*joined)[0].second;
  ASSERT_EQ(a.pieces.size(), 2U);
  EXPECT_TRUE(a.flattened);
  EXPECT_EQ(a.pieces[0].shape[0], 3U);
  EXPECT_EQ(a.pieces[1].offset[0], 3U);
  const Tensor& b = (*joined)[1].second;
  ASSERT_EQ(b.pieces.size(), 1U);
  EXPECT_FALSE(b.flattened);
  EXPECT_EQ(b.pieces[0].first_element, 1U);
}

TEST(Partitions, OfStages1And2MayHaveThePaddingOfTwiceTheRanksAndNoMore) {
  const auto layout = layout_of({{{"a", {6}, 6}}});
  EXPECT_TRUE(join_partitions(ZeroStage::kOptimizer, {{flat(4)}, {flat(4)}}, layout));
  const auto more = join_partitions(ZeroStage::kOptimizer, {{flat(5)}, {flat(5)}}, layout);
  ASSERT_FALSE(more);
  EXPECT_EQ(fixture::cause_of(more.error()), "shard-missing");
  EXPECT_THAT(more.error().message, HasSubstr("found 10 elements, expected 6"));
  EXPECT_FALSE(join_partitions(ZeroStage::kOptimizer, {{flat(3)}, {flat(2)}}, layout));
}

TEST(Partitions, OfStage3AreCutFromEachParameterByItself) {
  const auto layout = layout_of({{{"a", {3}, 3}}, {{"b", {2, 2}, 4}}});
  // a is 2 and 1 with a filler, b is 2 and 2; the second group begins after the first.
  const auto joined =
      join_partitions(ZeroStage::kParameters, {{flat(2), flat(2)}, {flat(2), flat(2)}}, layout);
  ASSERT_TRUE(joined) << joined.error().text();
  const Tensor& a = (*joined)[0].second;
  ASSERT_EQ(a.pieces.size(), 2U);
  EXPECT_EQ(a.pieces[1].shape[0], 1U);
  EXPECT_EQ(a.pieces[1].offset[0], 2U);
  const Tensor& b = (*joined)[1].second;
  EXPECT_EQ(b.pieces[0].first_element, 0U);
}

TEST(Partitions, OfStage3MustBeUsedUpExactly) {
  const auto layout = layout_of({{{"a", {4}, 4}}});
  const auto more = join_partitions(ZeroStage::kParameters, {{flat(3)}, {flat(2)}}, layout);
  ASSERT_FALSE(more);
  EXPECT_THAT(more.error().message, HasSubstr("found 3 elements, expected 2"));
  const auto fewer = join_partitions(ZeroStage::kParameters, {{flat(2)}, {flat(1)}}, layout);
  ASSERT_FALSE(fewer);
  EXPECT_THAT(fewer.error().message, HasSubstr("parameter 'a': a rank's partition ends early"));
}

}  // namespace
}  // namespace ckptverify
