// Orbax's directories as its source lays them out: recognised, and complete or not.
#include "formats/orbax.h"

#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

TEST(Orbax, TellsTheTreeWithTypesAndShapesAndThatItsArraysAreNotInterpreted) {
  const auto source = Source::open(fixture::good("orbax/good/100"));
  ASSERT_TRUE(source);
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "orbax");
  EXPECT_TRUE(checkpoint->findings.empty());
  EXPECT_EQ(checkpoint->uninterpreted.size(), 1U);
  const Entry* kernel = find_entry(*checkpoint, "params.dense.kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(std::get<Opaque>(kernel->node).type, "jax.Array [4, 3]");
  EXPECT_EQ(kernel->component, Component::kModel);
  fixture::expect_whole_coverage(*checkpoint);
}

TEST(Orbax, ReadsShapesAndTypesOfZarrArrays) {
  const std::string array = R"({"shape": [2, 5], "dtype": "<f4", "zarr_format": 2})";
  const Bytes bytes = as_bytes(array);
  const Bytes tree = as_bytes(std::string_view(R"({"tree_metadata": {}})"));
  const auto checkpoint =
      read_orbax(Source::memory_directory("7", {{"_METADATA", {tree.begin(), tree.end()}},
                                                {"params.w/.zarray", {bytes.begin(), bytes.end()}},
                                                {"params.w/0.0", std::vector<std::byte>(40)}}),
                 formats());
  ASSERT_TRUE(checkpoint);
  const Entry* entry = find_entry(*checkpoint, "params.w");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(std::get<Opaque>(entry->node).type, "zarr.Array [2, 5] <f4");
}

}  // namespace
}  // namespace ckptverify
