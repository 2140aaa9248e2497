// Megatron: a distributed checkpoint of Megatron Core itself, and the legacy layout by its source.
#include "formats/megatron.h"

#include <set>

#include "formats/container/megatron_states.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

Checkpoint read_good(const std::string& name) {
  const auto source = Source::open(fixture::good("megatron/good/" + name));
  EXPECT_TRUE(source);
  auto checkpoint = formats().read(*source);
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  return *std::move(checkpoint);
}

void expect_no_fail(const Checkpoint& checkpoint) {
  for (const Finding& finding : checkpoint.findings)
    EXPECT_NE(finding.status, Status::kFail) << finding.message;
  EXPECT_TRUE(checkpoint.uninterpreted.empty());
  fixture::expect_whole_coverage(checkpoint);
}

TEST(Megatron, ReadsTheIterationThatTheTrackerNames) {
  const Checkpoint checkpoint = read_good("distributed/save");
  EXPECT_EQ(checkpoint.format, "megatron-dist");
  fixture::expect_oracle(checkpoint, fixture::good("megatron/good/distributed/oracle.json"));
  expect_no_fail(checkpoint);
  const Entry* step = find_entry(checkpoint, "step.iteration");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(std::get<Value>(step->node), Value(std::int64_t{7}));
}

TEST(Megatron, PutsTheObjectsOfADistributedCheckpointWhereTheyBelong) {
  const Checkpoint checkpoint = read_good("distributed/save");
  std::set<std::string> components;
  for (const Entry& entry : checkpoint.entries) components.insert(component_label(entry));
  for (const std::string component : {"model", "optimizer", "scheduler", "step", "rng", "config"})
    EXPECT_TRUE(components.contains(component)) << component;
}

TEST(Megatron, GivesEachRankOfALegacyCheckpointItsOwnModelAndGenerators) {
  const Checkpoint checkpoint = read_good("legacy_tp2");
  EXPECT_EQ(checkpoint.format, "megatron-legacy");
  expect_no_fail(checkpoint);
  const Entry* weight = find_entry(checkpoint, "model.mp_rank_01.language_model.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(component_label(*weight), "model.1");
  EXPECT_EQ(relative_path(*weight), "language_model.weight");
  // What both ranks say alike is listed once.
  EXPECT_NE(find_entry(checkpoint, "config.args.lr"), nullptr);
  EXPECT_EQ(find_entry(checkpoint, "megatron.mp_rank_01.config.args.lr"), nullptr);
}

TEST(Megatron, OfOneRankHasNoNameForIt) {
  const Checkpoint checkpoint = read_good("legacy_w1");
  expect_no_fail(checkpoint);
  EXPECT_EQ(find_entry(checkpoint, "model.language_model.weight")->component, Component::kModel);
  EXPECT_EQ(find_entry(checkpoint, "scaler.grad_scaler.growth_tracker")->component,
            Component::kScaler);
}

TEST(MegatronNames, AreReadByTheirNumbers) {
  const auto rank = megatron_rank("mp_rank_03_012_001");
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->numbers, (std::vector<std::uint32_t>{3, 12, 1}));
  EXPECT_FALSE(megatron_rank("mp_rank_"));
  EXPECT_FALSE(megatron_rank("mp_rank_0x"));
  EXPECT_FALSE(megatron_rank("mp_rank_0_1_2_3"));
  EXPECT_EQ(megatron_iteration("iter_0000100"), 100U);
  EXPECT_FALSE(megatron_iteration("release"));
}

TEST(MegatronNames, OfShardsSayWhatTheyHold) {
  EXPECT_EQ(megatron_shard_placement("decoder.layers.mlp.weight").path,
            "model.decoder.layers.mlp.weight");
  EXPECT_EQ(megatron_shard_placement("rng_state/shard_0.0_1.1").component, Component::kRng);
  EXPECT_EQ(megatron_shard_placement("optimizer.state.exp_avg.decoder.w").path,
            "optimizer.state.exp_avg.decoder.w");
  EXPECT_EQ(megatron_shard_placement("chained_0.optimizer.state.exp_avg.w").component,
            Component::kOptimizer);
  EXPECT_EQ(megatron_shard_placement("common_state/shard_0_1.args.lr").path, "config.args.lr");
}

}  // namespace
}  // namespace ckptverify
