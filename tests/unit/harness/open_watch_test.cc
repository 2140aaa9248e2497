// Whether the kernel tells of files that are opened, and of nothing else.
#include "harness/open_watch.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace ckptverify {
namespace {

class Opening : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "ckptverify-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ / "step-5/rank-0");
    for (const char* file : {"step-5/model.pt", "step-5/rank-0/rng.pt", "one.pt"})
      std::ofstream(root_ / file) << "bytes";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void read(const char* name) const {
    std::ifstream stream(root_ / name);
    EXPECT_EQ(stream.get(), 'b');
  }

  std::filesystem::path root_;
};

TEST_F(Opening, OfAFileAnywhereBelowIsSeen) {
  for (const char* name : {"step-5/model.pt", "step-5/rank-0/rng.pt"}) {
    const OpenWatch watch(root_ / "step-5");
    read(name);
    EXPECT_EQ(watch.opened(), true) << name;
  }
  const OpenWatch watch(root_ / "one.pt");
  read("one.pt");
  EXPECT_EQ(watch.opened(), true);
}

TEST_F(Opening, OfADirectoryOrOfAnotherFileIsNone) {
  const OpenWatch watch(root_ / "step-5");
  const OpenWatch of_file(root_ / "one.pt");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) (void)entry;
  read("step-5/model.pt");
  EXPECT_EQ(of_file.opened(), false);
  const OpenWatch later(root_ / "step-5");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) (void)entry;
  EXPECT_EQ(later.opened(), false);
}

TEST_F(Opening, OfWhatIsNotThereIsNotKnown) {
  EXPECT_EQ(OpenWatch(root_ / "absent").opened(), std::nullopt);
}

}  // namespace
}  // namespace ckptverify
