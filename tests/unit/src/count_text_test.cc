// Numbers with their nouns.
#include "ckptverify/count_text.h"

#include <gtest/gtest.h>

namespace ckptverify {
namespace {

TEST(CountText, CountsOneAndMany) {
  EXPECT_EQ(count_text(0, "file"), "0 files");
  EXPECT_EQ(count_text(1, "file"), "1 file");
  EXPECT_EQ(count_text(2, "file"), "2 files");
  EXPECT_EQ(count_text(1, "entry"), "1 entry");
  EXPECT_EQ(count_text(30, "entry"), "30 entries");
  EXPECT_EQ(count_text(2, "key"), "2 keys");
  EXPECT_EQ(count_text(3, "process"), "3 processes");
}

TEST(CountText, TakesAPluralThatNoRuleMakes) {
  EXPECT_EQ(count_text(1, "line is no event", "lines are no events"), "1 line is no event");
  EXPECT_EQ(count_text(2, "line is no event", "lines are no events"), "2 lines are no events");
}

}  // namespace
}  // namespace ckptverify
