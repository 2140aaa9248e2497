// What patterns find, and how they refuse.
#include "ckptverify/path_pattern.h"

#include <gmock/gmock.h>

#include "tests/unit/src/memory_checkpoint.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;

bool guess_finds(const std::string& pattern, const std::string& path) {
  const auto compiled = PathPattern::guess(pattern);
  EXPECT_TRUE(compiled) << pattern;
  const auto found = compiled->found_in(path);
  EXPECT_TRUE(found);
  return *found;
}

TEST(PathPattern, TellsGlobsFromExpressions) {
  EXPECT_TRUE(guess_finds("*.bias", "model.h.0.bias"));
  EXPECT_FALSE(guess_finds("*.bias", "model.bias.w"));  // a glob is of the whole path
  EXPECT_TRUE(guess_finds("*h?0*", "model.h.0.w"));
  EXPECT_TRUE(guess_finds("bias", "model.bias.w"));  // an expression is found anywhere
  EXPECT_TRUE(guess_finds("h\\.[0-9]+\\.w$", "model.h.12.w"));
  EXPECT_TRUE(guess_finds(".*weight", "weight"));
  EXPECT_FALSE(PathPattern::guess("*a+b"));  // '+' makes it an expression, and no right one
}

TEST(PathPattern, KnowsTheClassesOfGlobs) {
  EXPECT_TRUE(guess_finds("*[!a]?*", "model.w"));
  EXPECT_FALSE(guess_finds("[!m]*", "model.w"));
  EXPECT_TRUE(guess_finds("*.[wb]?", "model.w1"));
  EXPECT_FALSE(guess_finds("*.[wb]?", "model.x1"));
  EXPECT_TRUE(guess_finds("?[]]*", "a]b"));
  EXPECT_TRUE(guess_finds("*[x", "a[x"));  // no class without its end
}

TEST(PathPattern, GivesUpOnAnExpressionThatTriesForever) {
  std::string path(45, 'a');
  path.push_back('b');
  const auto pattern = PathPattern::regex("(a*)*c");
  ASSERT_TRUE(pattern);
  const auto found = pattern->found_in(path);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(found.error().text(), path +
                                      ": the pattern (a*)*c takes too long on this path; found "
                                      "more than 1000000 steps, expected a simpler expression");
  const auto replaced = pattern->replace(path, "x");
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().kind, ErrorKind::kUsage);
  const auto easy = PathPattern::regex("^a+(b)$")->replace(path, "$1.c");
  ASSERT_TRUE(easy);
  EXPECT_EQ(*easy, "b.c");
}

TEST(PathPattern, RefusesWhatIsNoExpressionAsUsage) {
  const auto pattern = PathPattern::regex("(");
  ASSERT_FALSE(pattern);
  EXPECT_EQ(pattern.error().kind, ErrorKind::kUsage);
}

TEST(PathPattern, DoesNotFollowAPathWithoutBound) {
  const auto found = PathPattern::regex("(a|b)*c")->found_in(std::string(1'000'000, 'a'));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), HasSubstr("too long for a pattern; found 1000000 bytes"));
}

TEST(ComponentRules, SayWhatEntriesAreFor) {
  MemoryCheckpoint state;
  state.value("teacher.w", std::int64_t{1}).value("model.w", std::int64_t{2});
  Checkpoint checkpoint = state.build();
  const auto count =
      map_components(checkpoint, {{"^teacher\\.", Component::kEma}, {"^t", Component::kStep}});
  ASSERT_TRUE(count);
  EXPECT_EQ(*count, 1U);
  const Entry* entry = find_entry(checkpoint, "teacher.w");
  EXPECT_EQ(entry->component, Component::kEma);
  EXPECT_EQ(relative_path(*entry), "w");
}

}  // namespace
}  // namespace ckptverify
