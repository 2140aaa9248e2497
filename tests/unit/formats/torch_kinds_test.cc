// Every way in which PyTorch writes tensors and what stands beside them, in files of its own.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "formats/torch_zip.h"
#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

const std::string kGood = "torch-zip/good/";

Checkpoint read_good(const std::string& name) {
  auto checkpoint = read_torch_zip(
      Source::memory(name, testing::byte_vector(testing::torch_fixture_text(kGood + name))),
      FormatTable({}));
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

TEST(TorchKinds, AgreeWithPyTorch) {
  for (const std::string name :
       {"kind_calls.pt", "kind_dtypes.pt", "kind_module.pt", "kind_nested.pt", "kind_numpy.pt",
        "kind_quantized.pt", "kind_random.pt", "kind_sharded.pt", "kind_sparse.pt",
        "kind_subclasses.pt", "kind_views.pt", "protocol_3.pt", "protocol_4.pt", "protocol_5.pt"}) {
    SCOPED_TRACE(name);
    auto checkpoint = read_good(name);
    testing::expect_oracle(checkpoint, kGood + name + ".json");
    testing::expect_parts(checkpoint, kGood + name + ".json");
    EXPECT_TRUE(checkpoint.uninterpreted.empty());
    EXPECT_FALSE(testing::is_reported(std::move(checkpoint)));
  }
}

TEST(TorchKinds, GiveOneStateOneFingerprintInAllProtocols) {
  const auto first = fingerprint(read_good("protocol_3.pt"));
  ASSERT_TRUE(first);
  for (const std::string name : {"protocol_4.pt", "protocol_5.pt"}) {
    EXPECT_EQ(fingerprint(read_good(name))->whole, first->whole) << name;
  }
}

const Composite& composite_at(const Checkpoint& checkpoint, const std::string& path) {
  static const Composite none;
  const Entry* entry = find_entry(checkpoint, path);
  if (entry == nullptr) return none;
  const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&entry->node);
  return composite == nullptr ? none : **composite;
}

std::string part_text(const Composite& composite, const std::string& name) {
  for (const auto& [part_name, part] : composite.parts) {
    const auto* value = std::get_if<Value>(&part);
    if (part_name == name) return value == nullptr ? "no value" : value_text(*value);
  }
  return "no part";
}

TEST(TorchKinds, SayOfAShardWhichOneItIs) {
  const Checkpoint checkpoint = read_good("kind_sharded.pt");
  const Composite& columns = composite_at(checkpoint, "columns");
  EXPECT_EQ(columns.kind, "torch.distributed.tensor.DTensor");
  ASSERT_FALSE(columns.parts.empty());
  const auto& whole = std::get<Tensor>(columns.parts[0].second);
  EXPECT_TRUE(whole.absent);
  EXPECT_EQ(whole.shape, (std::vector<std::uint64_t>{4, 4}));
  EXPECT_EQ(part_text(columns, "_spec.placements.0.dim"), "1");
  EXPECT_EQ(part_text(columns, "_spec.mesh._mesh_dim_names.0"), "\"dp\"");
  const Composite& sharded = composite_at(checkpoint, "sharded");
  EXPECT_EQ(part_text(sharded, "local_shards.0.metadata.shard_sizes.0"), "2");
  EXPECT_EQ(part_text(sharded, "metadata.shards_metadata.1.shard_offsets.0"), "2");
  std::vector<std::string> tensors;
  for (const Finding& finding : checkpoint.findings) {
    if (finding.message.find("sharded over ranks") == std::string::npos) continue;
    EXPECT_EQ(finding.status, Status::kWarn);
    for (const Evidence& evidence : finding.evidence) tensors.push_back(evidence.value);
  }
  EXPECT_EQ(std::set<std::string>(tensors.begin(), tensors.end()),
            (std::set<std::string>{"columns", "rows", "sharded", "whole"}));
}

TEST(TorchKinds, KeepConjugateAndNegativeViewsAsSuch) {
  const Checkpoint checkpoint = read_good("kind_views.pt");
  const auto tensor = [&](const std::string& path) {
    const Entry* entry = find_entry(checkpoint, path);
    return entry == nullptr ? Tensor() : std::get<Tensor>(entry->node);
  };
  EXPECT_TRUE(tensor("conj").conjugate);
  EXPECT_FALSE(tensor("conj_twice").conjugate);
  EXPECT_TRUE(tensor("neg").negative);
  EXPECT_EQ(find_entry(checkpoint, "base")->alias_of, "alias");
  EXPECT_EQ(find_entry(checkpoint, "row")->alias_of, "");
}

TEST(TorchKinds, ListWhatGeneratorsHold) {
  const Checkpoint checkpoint = read_good("kind_random.pt");
  const auto value = [&](const std::string& path) {
    const Entry* entry = find_entry(checkpoint, path);
    const auto* found = entry == nullptr ? nullptr : std::get_if<Value>(&entry->node);
    return found == nullptr ? "none" : value_text(*found);
  };
  EXPECT_EQ(value("pcg64.bit_generator"), "\"PCG64\"");
  EXPECT_EQ(value("philox.bit_generator"), "\"Philox\"");
  EXPECT_EQ(value("state.bit_generator"), "\"MT19937\"");
  EXPECT_EQ(value("generator.initial_seed"), "7");
  EXPECT_EQ(value("generator.device"), "\"cpu\"");
  EXPECT_NE(find_entry(checkpoint, "generator.state"), nullptr);
  EXPECT_NE(find_entry(checkpoint, "bits.state.key"), nullptr);
}

}  // namespace
}  // namespace ckptverify
