// Entries by name and component.
#include "ckptverify/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ckptverify {
namespace {

using testing::ElementsAre;

Entry value_entry(std::string path, std::int64_t value = 0) {
  return {.path = std::move(path), .node = Value(value)};
}

Entry assigned(std::string path, std::optional<std::uint32_t> rank = std::nullopt) {
  std::vector<Entry> entries = {value_entry(std::move(path))};
  entries[0].rank = rank;
  assign_components(entries);
  return entries[0];
}

std::vector<std::string> paths(const Checkpoint& checkpoint) {
  std::vector<std::string> paths;
  for (const Entry& entry : checkpoint.entries) paths.push_back(entry.path);
  return paths;
}

TEST(AssignComponents, TheRootIsTheFirstKeyAndItsDot) {
  const Entry entry = assigned("state_dict.wte.weight");
  EXPECT_EQ(entry.component, Component::kModel);
  EXPECT_EQ(relative_path(entry), "wte.weight");
  EXPECT_EQ(component_label(entry), "model");
}

TEST(AssignComponents, ALeafAtTheTopKeepsItsPath) {
  const Entry entry = assigned("global_step");
  EXPECT_EQ(entry.component, Component::kStep);
  EXPECT_EQ(relative_path(entry), "global_step");
}

TEST(AssignComponents, OtherHasNoRoot) {
  const Entry entry = assigned("best.loss");
  EXPECT_EQ(entry.component, Component::kOther);
  EXPECT_EQ(relative_path(entry), "best.loss");
}

TEST(AssignComponents, ARankIsPartOfTheRootAndOfTheLabel) {
  const Entry entry = assigned("rng.1.torch", 1);
  EXPECT_EQ(relative_path(entry), "torch");
  EXPECT_EQ(component_label(entry), "rng.1");
  EXPECT_EQ(relative_path(assigned("rng.1.torch")), "1.torch");
  EXPECT_EQ(relative_path(assigned("rng.12.torch", 1)), "12.torch");
  EXPECT_EQ(relative_path(assigned("rng.1", 1)), "1");
}

TEST(SortEntries, SortsByPathAndFinds) {
  Checkpoint checkpoint;
  checkpoint.entries = {value_entry("b"), value_entry("a.b"), value_entry("a-b"), value_entry("a")};
  sort_entries(checkpoint);
  EXPECT_THAT(paths(checkpoint), ElementsAre("a", "a-b", "a.b", "b"));
  EXPECT_TRUE(checkpoint.findings.empty());
  EXPECT_EQ(find_entry(checkpoint, "a.b"), &checkpoint.entries[2]);
  EXPECT_EQ(find_entry(checkpoint, "a.c"), nullptr);
  EXPECT_EQ(find_entry(checkpoint, "z"), nullptr);
}

TEST(SortEntries, MovesEachEntryWithItsPath) {
  Checkpoint checkpoint;
  std::vector<std::string> expected;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t number = i * 387 % 1000;
    // Some part before the eighth byte, some after it, some are a part of another.
    const std::string path = (number % 3 == 0 ? "" : "long.prefix.") + std::to_string(number) +
                             (number % 7 == 0 ? std::string(1, '\0') : "");
    expected.push_back(path);
    checkpoint.entries.push_back(value_entry(path, number));
  }
  std::sort(expected.begin(), expected.end());
  sort_entries(checkpoint);
  EXPECT_EQ(paths(checkpoint), expected);
  for (const Entry& entry : checkpoint.entries) {
    const auto number = std::get<std::int64_t>(std::get<Value>(entry.node));
    EXPECT_NE(entry.path.find(std::to_string(number)), std::string::npos) << entry.path;
  }
  EXPECT_TRUE(checkpoint.findings.empty());
}

TEST(SortEntries, TellsDuplicatesApartAndReportsEach) {
  Checkpoint checkpoint;
  checkpoint.entries = {value_entry("a", 1), value_entry("b", 4), value_entry("a", 2),
                        value_entry("a#2", 5), value_entry("a", 3)};
  sort_entries(checkpoint);
  EXPECT_THAT(paths(checkpoint), ElementsAre("a", "a#2", "a#3", "a#4", "b"));
  EXPECT_EQ(std::get<Value>(find_entry(checkpoint, "a")->node), Value(std::int64_t{1}));
  EXPECT_EQ(std::get<Value>(find_entry(checkpoint, "a#3")->node), Value(std::int64_t{2}));
  EXPECT_EQ(std::get<Value>(find_entry(checkpoint, "a#4")->node), Value(std::int64_t{3}));
  ASSERT_EQ(checkpoint.findings.size(), 2U);
  EXPECT_EQ(checkpoint.findings[0].status, Status::kFail);
  EXPECT_EQ(checkpoint.findings[0].subject, "a");
}

}  // namespace
}  // namespace ckptverify
