// Folders of several checkpoints: what is one, what a resume would pick from it, and what is wrong
// with that.
#include "formats/collection.h"

#include <fstream>
#include <map>

#include "formats/container/checkpoint_names.h"
#include "formats/container/directory_names.h"
#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Directory = std::map<std::string, FileBytes>;

FileBytes bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

/// A directory of ours, which is small and knows whether it is complete.
void add_sharded(Directory& directory, const std::string& folder) {
  const auto root = fixture::good("sharded/good/safetensors_tiny/step-5");
  for (const auto& file : std::filesystem::directory_iterator(root))
    directory[folder + "/" + file.path().filename().string()] = fixture::read_file(file.path());
}

std::optional<Collection> find(Directory directory) {
  const auto found =
      find_collection(Source::memory_directory("run", std::move(directory)), formats());
  EXPECT_TRUE(found) << found.error().text();
  return *found;
}

std::vector<std::string> names(const Collection& collection) {
  std::vector<std::string> all;
  for (const CollectionItem& item : collection.items) all.push_back(item.name);
  return all;
}

std::vector<std::string> bad(const Collection& collection) {
  std::vector<std::string> messages;
  for (const Finding& finding : collection.findings)
    if (fixture::is_bad(finding)) messages.push_back(finding.cause->id() + " " + finding.message);
  return messages;
}

std::string pick_of(const Collection& collection) {
  return collection.pick ? collection.items[*collection.pick].name : "none";
}

Directory safetensors_files(const std::vector<std::string>& file_names) {
  Directory directory;
  for (const std::string& name : file_names)
    directory[name] = fixture::read_file(fixture::good("safetensors/good/dtypes.safetensors"));
  return directory;
}

TEST(Collection, OrdersStepsAsNumbersAndNamesTheTrapOfSortingThemAsText) {
  const auto collection =
      find(safetensors_files({"ckpt_5.safetensors", "ckpt_10.safetensors", "ckpt_9.safetensors"}));
  ASSERT_TRUE(collection);
  EXPECT_THAT(names(*collection),
              ElementsAre("ckpt_5.safetensors", "ckpt_9.safetensors", "ckpt_10.safetensors"));
  EXPECT_EQ(pick_of(*collection), "ckpt_10.safetensors");
  EXPECT_THAT(bad(*collection), IsEmpty());
  EXPECT_EQ(collection->findings[0].evidence.back().value,
            "a program that sorts the names as text takes ckpt_9.safetensors for the newest, not "
            "ckpt_10.safetensors");
}

TEST(Collection, TakesTheNewestWholeOneWhereTheWriterMarksIt) {
  Directory directory;
  for (const std::string name : {"step-5", "step-10", ".tmp-step-15"}) {
    add_sharded(directory, name);
    if (name == "step-10") directory.erase("step-10/index.json.xxh3");
  }
  const auto collection = find(directory);
  ASSERT_TRUE(collection);
  EXPECT_THAT(names(*collection), ElementsAre("step-5", "step-10", ".tmp-step-15"));
  EXPECT_EQ(collection->items[0].wholeness, Wholeness::kWhole);
  EXPECT_EQ(collection->items[1].wholeness, Wholeness::kNotWhole);
  EXPECT_TRUE(collection->items[2].temporary);
  EXPECT_EQ(pick_of(*collection), "step-5");
  EXPECT_THAT(bad(*collection), IsEmpty());
  EXPECT_EQ(name_one_of(Source::memory_directory("run", directory), *collection).text(),
            "run: a directory of checkpoints, name one of them; found whole: step-5; not whole: "
            "step-10, .tmp-step-15");
}

TEST(Collection, FollowsThePointerAndSaysWhereItLeads) {
  Directory directory;
  add_sharded(directory, "step-5");
  add_sharded(directory, "step-10");
  directory["latest"] = bytes_of("step-5\n");
  auto collection = find(directory);
  ASSERT_TRUE(collection);
  EXPECT_EQ(pick_of(*collection), "step-5");
  directory["latest"] = bytes_of("step-20");
  collection = find(directory);
  EXPECT_EQ(pick_of(*collection), "none");
  EXPECT_THAT(bad(*collection),
              ElementsAre("uncommitted latest: points to nothing; found 'step-20', expected one of "
                          "the checkpoints here"));
  directory["latest"] = bytes_of("step-10");
  directory.erase("step-10/index.json");
  collection = find(directory);
  EXPECT_THAT(
      bad(*collection),
      ElementsAre(HasSubstr("uncommitted step-10: a resume picks it, and it is not whole")));
}

TEST(Collection, FollowsASymbolicLink) {
  const std::filesystem::path root =
      std::filesystem::path(testing::TempDir()) / "ckptverify_collection_link";
  std::filesystem::remove_all(root);
  for (const std::string name : {"step-5", "step-10"}) {
    std::filesystem::create_directories(root / name);
    std::filesystem::copy(fixture::good("sharded/good/safetensors_tiny/step-5"), root / name,
                          std::filesystem::copy_options::recursive);
  }
  std::filesystem::create_directory_symlink("step-5", root / "latest");
  const auto source = Source::open(root);
  ASSERT_TRUE(source);
  const auto collection = find_collection(*source, formats());
  ASSERT_TRUE(collection);
  ASSERT_TRUE(*collection);
  EXPECT_EQ(pick_of(**collection), "step-5");
  EXPECT_EQ((*collection)->rule, "the checkpoint that `latest` names");
  std::filesystem::remove_all(root);
}

TEST(Collection, IsNotOneCheckpointNorAnEmptyFolder) {
  Directory one;
  add_sharded(one, ".");
  Directory directory;
  for (const auto& [name, bytes] : one) directory[name.substr(2)] = bytes;
  EXPECT_FALSE(find(directory));
  EXPECT_FALSE(find({}));
  EXPECT_FALSE(find({{"README.md", bytes_of("nothing")}}));
  EXPECT_FALSE(find(safetensors_files({"rank0.safetensors", "rank1.safetensors"})));
  EXPECT_FALSE(find(
      safetensors_files({"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})));
  EXPECT_FALSE(find(safetensors_files({"model.safetensors", "optimizer.safetensors"})));
}

struct NameCase {
  std::string name;
  std::optional<std::uint64_t> step;
  bool temporary = false;
};

TEST(CheckpointNames, ReadStepsAsTheirWritersWriteThem) {
  for (const NameCase& expected :
       {NameCase{"checkpoint-500", 500}, NameCase{"checkpoint_3", 3}, NameCase{"global_step12", 12},
        NameCase{"iter_0000100", 100}, NameCase{"step=7", 7}, NameCase{"epoch=1-step=10", 10},
        NameCase{"1200", 1200}, NameCase{".tmp-step-5", 5, true}, NameCase{"step-5.tmp", 5, true},
        NameCase{"100.orbax-checkpoint-tmp-17", 100, true},
        NameCase{"tmp-checkpoint-9", 9, true}}) {
    const auto name = directory_checkpoint_name(expected.name);
    ASSERT_TRUE(name) << expected.name;
    EXPECT_EQ(name->step, expected.step) << expected.name;
    EXPECT_EQ(name->temporary, expected.temporary) << expected.name;
  }
  for (const std::string none : {"runs", "logs", "model", "step10k", "resnet50", "latest"})
    EXPECT_FALSE(directory_checkpoint_name(none)) << none;
}

TEST(CheckpointNames, TakeNoPartForACheckpoint) {
  EXPECT_EQ(file_checkpoint_name("epoch=3-val_loss=0.25.ckpt")->step, 3U);
  EXPECT_EQ(file_checkpoint_name("ckpt_12.pt")->step, 12U);
  ASSERT_TRUE(file_checkpoint_name("last-v1.ckpt"));
  EXPECT_FALSE(file_checkpoint_name("last-v1.ckpt")->step);
  for (const std::string none : {"rank0.pt", "model-00001-of-00004.safetensors", "rng_state_0.pth",
                                 "step-5.txt", "resnet50.pt", "random_states_0.pkl"})
    EXPECT_FALSE(file_checkpoint_name(none)) << none;
}

TEST(DirectoryNames, CompareNumbersOfAnyLength) {
  EXPECT_TRUE(natural_less("step-9", "step-10"));
  EXPECT_FALSE(natural_less("step-10", "step-9"));
  EXPECT_TRUE(natural_less("a99999999999999999999998", "a99999999999999999999999"));
  EXPECT_TRUE(natural_less("a01", "a1"));
  EXPECT_FALSE(natural_less("a1", "a1"));
}

TEST(DirectoryNames, FindHolesWithoutCountingToTheEnd) {
  const Holes holes = holes_in({0, 1, 3, 3}, 0, 5);
  EXPECT_EQ(holes.count, 2U);
  EXPECT_EQ(holes.first, 2U);
  EXPECT_EQ(holes_in({1, 2}, 1, 3).count, 0U);
  EXPECT_EQ(holes_in({1}, 1, UINT64_MAX).count, UINT64_MAX - 2);
  EXPECT_EQ(number_between("rank_007.pt", "rank_", ".pt"), 7U);
  EXPECT_FALSE(number_between("rank_99999999999999999999.pt", "rank_", ".pt"));
  EXPECT_FALSE(number_between("rank_.pt", "rank_", ".pt"));
  EXPECT_FALSE(number_between("rank_-1.pt", "rank_", ".pt"));
}

}  // namespace
}  // namespace ckptverify
