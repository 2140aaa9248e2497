// Errors as text, and the exit code of a broken assertion.
#include "ckptverify/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ckptverify {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{.message = "odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  CKPTVERIFY_TRY(const int once, half(value));
  return half(once);
}

TEST(Error, TextHasSubjectOffsetAndMessage) {
  const Error error{.message = "found 1, expected 2", .subject = "a.pt", .offset = 7};
  EXPECT_EQ(error.text(), "a.pt: byte 7: found 1, expected 2");
}

TEST(Error, TextLeavesOutWhatIsUnknown) {
  EXPECT_EQ((Error{.message = "no"}).text(), "no");
  EXPECT_EQ((Error{.message = "no", .offset = 0}).text(), "byte 0: no");
  EXPECT_EQ((Error{.message = "no", .subject = "a"}).text(), "a: no");
}

TEST(Error, KeepsItsFirstSubject) {
  EXPECT_EQ((Error{.message = "no"}.about("member").about("directory")).text(), "member: no");
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(AssertionDeathTest, PrintsConditionAndPlaceAndExitsWith70) {
  EXPECT_EXIT(CKPTVERIFY_ASSERT(1 + 1 == 3), testing::ExitedWithCode(70),
              "assertion broken: 1 \\+ 1 == 3 at .*result_test\\.cc:[0-9]+");
}

TEST(Assertion, DoesNothingWhenItHolds) {
  int evaluated = 0;
  CKPTVERIFY_ASSERT(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace ckptverify
