// Keras' files against h5py's reading of them.
#include "formats/keras.h"

#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

Result<Checkpoint> read_good(const std::string& name) {
  const auto source = Source::open(fixture::good("keras/good/" + name));
  EXPECT_TRUE(source);
  return formats().read(*source);
}

class KerasFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(KerasFiles, AreReadAsH5pyReadsThem) {
  const auto checkpoint = read_good(GetParam());
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  fixture::expect_oracle(*checkpoint, fixture::good("keras/good/" + GetParam() + ".oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  EXPECT_TRUE(checkpoint->uninterpreted.empty());
}

INSTANTIATE_TEST_SUITE_P(All, KerasFiles,
                         ::testing::Values("model.keras", "net.weights.h5", "bfloat16.weights.h5",
                                           "legacy.h5"));

TEST(Keras, TellsModelOptimizerStepAndArchitectureApart) {
  const auto checkpoint = read_good("model.keras");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->format, "keras");
  EXPECT_EQ(find_entry(*checkpoint, "layers.dense.vars.0")->component, Component::kModel);
  EXPECT_EQ(find_entry(*checkpoint, "optimizer.vars.0")->component, Component::kStep);
  EXPECT_EQ(find_entry(*checkpoint, "optimizer.vars.2")->component, Component::kOptimizer);
  EXPECT_EQ(find_entry(*checkpoint, "config.metadata.keras_version")->component,
            Component::kConfig);
}

TEST(Keras, VerifiesTheDigestsOfAllMembers) {
  const auto checkpoint = read_good("model.keras");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->checksums.size(), 3U);
  for (const Finding& finding : verify_checksums(*checkpoint))
    EXPECT_EQ(finding.status, Status::kPass) << finding.message;
}

TEST(Keras, TellsTheStepOfALegacyFile) {
  const auto checkpoint = read_good("legacy.h5");
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(find_entry(*checkpoint, "optimizer_weights.adam.iteration")->component,
            Component::kStep);
  EXPECT_EQ(find_entry(*checkpoint, "model_weights.first.sequential.first.kernel")->component,
            Component::kModel);
}

}  // namespace
}  // namespace ckptverify
