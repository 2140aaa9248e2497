// The table of causes.
#include "ckptverify/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ckptverify {
namespace {

TEST(CauseKinds, AreFortyWithDistinctIds) {
  std::set<std::string_view> ids;
  for (const CauseKindRow& row : cause_kinds()) ids.insert(row.id);
  EXPECT_EQ(cause_kinds().size(), 40U);
  EXPECT_EQ(ids.size(), 40U);
}

TEST(CauseKinds, HaveOneSentenceOfMeaningAndOneOfRemedy) {
  for (const CauseKindRow& row : cause_kinds()) {
    for (const std::string_view sentence : {row.meaning, row.remedy}) {
      EXPECT_GT(sentence.size(), 20U) << row.id;
      EXPECT_EQ(sentence.back(), '.') << row.id;
      EXPECT_EQ(sentence.find(". "), std::string_view::npos) << row.id;
    }
    EXPECT_NE(row.meaning, row.remedy) << row.id;
  }
}

TEST(Cause, IdIsTheKindsName) {
  EXPECT_EQ((Cause{.kind = CauseKind::kSchedLost}).id(), "sched-lost");
  EXPECT_EQ((Cause{.kind = CauseKind::kHangFs}).id(), "hang-fs");
  EXPECT_EQ((Cause{.kind = CauseKind::kByteNondet}).id(), "byte-nondet");
}

TEST(Cause, UnknownNamesTheComponent) {
  EXPECT_EQ((Cause{.kind = CauseKind::kUnknown, .component = Component::kModel}).id(),
            "unknown(model)");
  EXPECT_EQ(Cause{}.id(), "unknown(other)");
}

TEST(Cause, IsOneWhereTheIdIsOne) {
  const Cause other{.kind = CauseKind::kUnknown, .component = Component::kOther};
  EXPECT_EQ(Cause{}.id(), other.id());
  EXPECT_EQ(Cause{}, other);
  EXPECT_NE(Cause{}, (Cause{.kind = CauseKind::kUnknown, .component = Component::kModel}));
  EXPECT_NE(Cause{}, (Cause{.kind = CauseKind::kScaler}));
}

}  // namespace
}  // namespace ckptverify
