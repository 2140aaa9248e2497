// Copies that are whole and independent of their originals.
#include "harness/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

namespace ckptverify {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Snapshots : public ::testing::Test {
 protected:
  Snapshots() {
    std::string pattern = (fs::temp_directory_path() / "ckptverify-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ / "step-5/inner/empty");
    std::ofstream(root_ / "step-5/a") << std::string(3'000'000, 'a');
    std::ofstream(root_ / "step-5/inner/b") << "b";
    std::ofstream(root_ / "step-5/none");
  }
  ~Snapshots() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(Snapshots, CopyWholeDirectories) {
  const auto copy = take_snapshot(root_ / "step-5", root_ / "made/here/step-5");
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(copy->file_count, 3U);
  EXPECT_EQ(copy->bytes, 3'000'001U);
  EXPECT_EQ(read(copy->path / "a"), std::string(3'000'000, 'a'));
  EXPECT_EQ(read(copy->path / "inner/b"), "b");
  EXPECT_TRUE(fs::is_directory(copy->path / "inner/empty"));
  EXPECT_EQ(fs::file_size(copy->path / "none"), 0U);
}

TEST_F(Snapshots, AreOutOfReachOfLaterWrites) {
  ASSERT_TRUE(take_snapshot(root_ / "step-5", root_ / "copy"));
  std::fstream(root_ / "step-5/a") << "changed in place";
  EXPECT_EQ(read(root_ / "copy/a"), std::string(3'000'000, 'a'));
  EXPECT_EQ(fs::hard_link_count(root_ / "copy/a"), 1U);
}

TEST_F(Snapshots, CopyASingleFile) {
  const auto copy = take_snapshot(root_ / "step-5/a", root_ / "copy.pt");
  ASSERT_TRUE(copy);
  EXPECT_EQ(fs::file_size(root_ / "copy.pt"), 3'000'000U);
}

TEST_F(Snapshots, KeepLinksInsideAndRefuseLinksOut) {
  fs::create_symlink("inner/b", root_ / "step-5/link");
  const auto copy = take_snapshot(root_ / "step-5", root_ / "copy");
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(fs::read_symlink(root_ / "copy/link"), "inner/b");
  fs::create_symlink("../outside", root_ / "step-5/inner/out");
  EXPECT_TRUE(take_snapshot(root_ / "step-5", root_ / "copy-2"));  // step-5/outside: still inside
  fs::create_symlink("../../outside", root_ / "step-5/inner/far");
  const auto refused = take_snapshot(root_ / "step-5", root_ / "copy-3");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("inner/far: is a link out of the checkpoint"));
}

TEST_F(Snapshots, FollowALinkToTheCheckpointItself) {
  fs::create_directory_symlink("step-5", root_ / "latest");
  const auto copy = take_snapshot(root_ / "latest", root_ / "copy");
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(copy->file_count, 3U);
}

TEST_F(Snapshots, RefuseWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((root_ / "step-5/pipe").c_str(), 0600), 0);
  const auto refused = take_snapshot(root_ / "step-5", root_ / "copy");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("pipe: is neither a regular file"));
}

TEST_F(Snapshots, NameTheFileThatCannotBeWritten) {
  const auto refused = take_snapshot(root_ / "step-5/a", "/dev/full/a");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("/dev/full"));
  fs::create_directory(root_ / "there");
  const auto taken = take_snapshot(root_ / "step-5/a", root_ / "there");
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().text(), HasSubstr("there: cannot be made: "));
}

TEST_F(Snapshots, AreBrokenOffOnceTheUserWantsToStop) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_TRUE(take_snapshot(root_ / "step-5", root_ / "before", ends[0]));
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  const auto copy = take_snapshot(root_ / "step-5/a", root_ / "copy", ends[0]);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().text(),
            (root_ / "copy").string() + ": the copy was broken off by a signal");
  EXPECT_FALSE(fs::exists(root_ / "copy"));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Snapshots, SayThatNothingIsThere) {
  const auto refused = take_snapshot(root_ / "step-6", root_ / "copy");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("step-6: cannot be opened: "));
}

TEST_F(Snapshots, MoveAwayLeavesNothingBehind) {
  ASSERT_TRUE(move_away(root_ / "step-5", root_ / "away/run/step-5"));
  EXPECT_FALSE(fs::exists(root_ / "step-5"));
  EXPECT_EQ(read(root_ / "away/run/step-5/inner/b"), "b");
}

}  // namespace
}  // namespace ckptverify
