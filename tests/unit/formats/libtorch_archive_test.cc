#include "formats/libtorch_archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "formats/torch_zip.h"
#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using testing::byte_vector;
using testing::pickle_dict;
using testing::pickle_string;
using testing::pickle_tensor;
using testing::pickled;
using testing::small_zip;

const std::string kGood = "libtorch-archive/good/";

Result<Checkpoint> read_bytes(std::vector<std::byte> bytes) {
  return read_libtorch_archive(Source::memory("file", std::move(bytes)), FormatTable({}));
}
Result<Checkpoint> read(const std::string& text) {
  return read_bytes(byte_vector(text));
}

Checkpoint read_good(const std::string& name) {
  auto checkpoint = read(testing::torch_fixture_text(kGood + name));
  EXPECT_TRUE(checkpoint) << checkpoint.error().text();
  return checkpoint ? *std::move(checkpoint) : Checkpoint();
}

std::string module(const std::vector<std::pair<std::string, std::string>>& attributes) {
  return "c__torch__\nModule\n)\x81" + pickle_dict(attributes) + "b";
}

/// A tensor of one int64, as LibTorch writes a size.
std::string count(const std::string& key) {
  return pickle_tensor(
      {.storage = "LongStorage", .key = key, .count = 1, .size = {}, .stride = {}});
}

/// An SGD-like optimizer of two parameters; data/0 and data/1 are the two sizes.
testing::SmallZip optimizer(const std::string& state_address, std::uint64_t listed) {
  const std::string step = module({{"step", "K\5"}});
  const std::string group = module({{"params/size", count("1")},
                                    {"params/0", pickle_string("900")},
                                    {"params/1", pickle_string("100")},
                                    {"options", module({{"lr", testing::pickle_int(1)}})}});
  const std::string root = module(
      {{"pytorch_version", pickle_string("1.5.0")},
       {"state", module({{state_address, step}})},
       {"param_groups", module({{"param_groups/size", count("0")}, {"param_groups/0", group}})}});
  return small_zip({{"o/data/0", testing::little(1, 8)},
                    {"o/data/1", testing::little(listed, 8)},
                    {"o/data.pkl", pickled(root)},
                    {"o/constants.pkl", pickled(")")},
                    {"o/version", "3\n"}});
}

TEST(LibtorchArchive, AgreesWithLibTorchOnRealFiles) {
  for (const std::string name : {"net.pt", "opt.pt", "rng.pt", "scripted.pt"}) {
    SCOPED_TRACE(name);
    const auto bytes = byte_vector(testing::torch_fixture_text(kGood + name));
    EXPECT_TRUE(sniff_libtorch_archive(Source::memory(name, bytes)));
    EXPECT_FALSE(sniff_torch_zip(Source::memory(name, bytes)));
    auto checkpoint = read_good(name);
    testing::expect_oracle(checkpoint, kGood + name + ".json");
    EXPECT_FALSE(testing::is_reported(std::move(checkpoint)));
  }
}

TEST(LibtorchArchive, GivesWholeArchivesTheirComponent) {
  for (const auto& [name, component] :
       {std::pair{"net.pt", Component::kModel}, std::pair{"opt.pt", Component::kOptimizer},
        std::pair{"scripted.pt", Component::kModel}}) {
    for (const Entry& entry : read_good(name).entries) {
      EXPECT_EQ(entry.component, component) << name << ": " << entry.path;
      EXPECT_EQ(entry.root_size, 0U);
    }
  }
  EXPECT_EQ(read_good("rng.pt").entries.at(0).component, Component::kRng);
}

TEST(LibtorchArchive, NoticesEveryFlippedByte) {
  testing::expect_every_flip_noticed(byte_vector(testing::torch_fixture_text(kGood + "rng.pt")),
                                     read_bytes);
}

TEST(LibtorchArchive, RefusesEveryPrefix) {
  testing::expect_every_prefix_refused(byte_vector(testing::torch_fixture_text(kGood + "rng.pt")),
                                       read_bytes);
}

TEST(LibtorchArchive, KeysAnOptimizersStateByThePositionOfItsParameter) {
  const auto checkpoint = read(optimizer("100", 2).bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  std::vector<std::string> paths;
  for (const Entry& entry : checkpoint->entries) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"param_groups.0.lr", "param_groups.0.params.0",
                                             "param_groups.0.params.1", "pytorch_version",
                                             "state.1.step"}));
  EXPECT_FALSE(testing::is_reported(checkpoint));
}

TEST(LibtorchArchive, GivesOptimizersFromTwoProcessesOneFingerprint) {
  auto first = optimizer("100", 2).bytes;
  auto second = first;
  for (std::size_t at = 0; (at = second.find(pickle_string("100"), at)) != std::string::npos;) {
    second.replace(at + 5, 3, "777");
  }
  ASSERT_NE(first, second);
  const auto a = read(first);
  const auto b = read(second);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(fingerprint(*a)->whole, fingerprint(*b)->whole);
}

TEST(LibtorchArchive, FindsStateOfAParameterThatNoGroupLists) {
  const auto checkpoint = read(optimizer("555", 2).bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].status, Status::kFail);
  EXPECT_EQ(checkpoint->findings[0].cause, (Cause{CauseKind::kOptMap}));
}

TEST(LibtorchArchive, FindsAGroupThatContradictsItsSize) {
  const auto zip = optimizer("100", 3);
  const auto checkpoint = read(zip.bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].cause, (Cause{CauseKind::kLayout}));
  EXPECT_EQ(checkpoint->findings[0].evidence[0].value, std::to_string(zip.header_offsets[1] + 38));
}

TEST(LibtorchArchive, JoinsSubmodulesByDots) {
  const std::string root =
      module({{"model", module({{"layer", module({{"weight", pickle_tensor()}})}})},
              {"optimizer", module({{"step", "K\7"}})}});
  const auto checkpoint = read(small_zip({{"m/data/0", std::string(16, '\1')},
                                          {"m/data.pkl", pickled(root)},
                                          {"m/constants.pkl", pickled(")")},
                                          {"m/version", "3\n"}})
                                   .bytes);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  const Entry* weight = find_entry(*checkpoint, "model.layer.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->component, Component::kModel);
  EXPECT_EQ(relative_path(*weight), "layer.weight");
  const Entry* step = find_entry(*checkpoint, "optimizer.step");
  ASSERT_NE(step, nullptr);
  EXPECT_EQ(step->component, Component::kOptimizer);
}

TEST(LibtorchArchive, RecognisesACutFileByItsBeginning) {
  const std::string text = testing::torch_fixture_text(kGood + "net.pt").substr(0, 4000);
  EXPECT_TRUE(sniff_libtorch_archive(Source::memory("cut", byte_vector(text))));
  const auto checkpoint = read(text);
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().cause, (Cause{CauseKind::kTrunc}));
}

}  // namespace
}  // namespace ckptverify
