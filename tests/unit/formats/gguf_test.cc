// GGUF against files of the gguf package, and one bad header for each rule.
#include "formats/gguf.h"

#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using ::testing::HasSubstr;

Result<Checkpoint> read_bytes(FileBytes bytes) {
  return read_gguf(Source::memory("x.gguf", std::move(bytes)), formats());
}

FileBytes good_bytes(const std::string& name) {
  return fixture::read_file(fixture::good("gguf/good/" + name));
}

class GgufFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufFiles, AreReadAsTheirPackageReadsThem) {
  const auto checkpoint = read_bytes(good_bytes(GetParam() + ".gguf"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  fixture::expect_oracle(*checkpoint, fixture::good("gguf/good/" + GetParam() + ".oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
  EXPECT_TRUE(checkpoint->findings.empty());
  EXPECT_TRUE(checkpoint->uninterpreted.empty());
}

INSTANTIATE_TEST_SUITE_P(All, GgufFiles, ::testing::Values("model", "big_endian", "aligned_256"));

TEST(Gguf, KeepsMetadataAsConfigurationAndTensorsAsTheModel) {
  const auto checkpoint = read_bytes(good_bytes("model.gguf"));
  ASSERT_TRUE(checkpoint);
  const Entry* tied = find_entry(*checkpoint, "config.general.tied");
  ASSERT_NE(tied, nullptr);
  EXPECT_EQ(std::get<Value>(tied->node), Value(true));
  EXPECT_EQ(tied->component, Component::kConfig);
  const Entry* largest = find_entry(*checkpoint, "config.general.largest");
  ASSERT_NE(largest, nullptr);
  EXPECT_EQ(value_text(std::get<Value>(largest->node)), "18446744073709551615");
  EXPECT_EQ(find_entry(*checkpoint, "token_embd.weight")->component, Component::kModel);
}

TEST(Gguf, KeepsQuantizedTensorsAsTheBytesOfTheirBlocks) {
  const auto checkpoint = read_bytes(good_bytes("model.gguf"));
  ASSERT_TRUE(checkpoint);
  const Entry* entry = find_entry(*checkpoint, "blk.0.q4.weight");
  ASSERT_NE(entry, nullptr);
  const auto& composite = *std::get<std::shared_ptr<const Composite>>(entry->node);
  EXPECT_EQ(composite.kind, "gguf.Q4_0");
  ASSERT_EQ(composite.parts.size(), 1U);
  // Two rows of 64 elements: two blocks of 18 bytes each.
  EXPECT_EQ(std::get<Tensor>(composite.parts[0].second).shape, (std::vector<std::uint64_t>{2, 36}));
}

TEST(Gguf, EveryPrefixIsRefusedOrLacksPaddingAlone) {
  const FileBytes whole = good_bytes("big_endian.gguf");
  const auto good = read_bytes(whole);
  ASSERT_TRUE(good);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = read_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    if (!cut) continue;
    EXPECT_EQ(fixture::owner_of(*good, 0, size), Owner::kPadding) << size;
    EXPECT_FALSE(cut->findings.empty()) << size;
  }
}

TEST(Gguf, EveryFlipIsNoticed) {
  testing::expect_every_flip_noticed(good_bytes("model.gguf"), read_bytes);
}

TEST(Gguf, RefusesTensorsThatOverlapWithTheirNames) {
  FileBytes bytes = good_bytes("model.gguf");
  // The last tensor's offset is the last number of the header; its own padding comes after it.
  const auto checkpoint = read_bytes(bytes);
  ASSERT_TRUE(checkpoint);
  const std::string text(as_text(bytes));
  const std::size_t name = text.find("output.weight");
  ASSERT_NE(name, std::string::npos);
  const std::size_t offset = name + 13 + 4 + 16 + 4;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), 8, std::byte{});
  const auto overlapping = read_bytes(bytes);
  ASSERT_FALSE(overlapping);
  EXPECT_EQ(fixture::cause_of(overlapping.error()), "layout");
  EXPECT_THAT(overlapping.error().message, HasSubstr("overlaps the one before it"));
}

}  // namespace
}  // namespace ckptverify
