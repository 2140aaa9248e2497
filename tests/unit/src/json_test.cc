// What the strict parser refuses, and that what is written reads back.
#include "ckptverify/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "ckptverify/json_writer.h"

namespace ckptverify {
namespace {

using testing::HasSubstr;

TEST(JsonParse, ReadsNestedValuesInTheirOrder) {
  const auto json = Json::parse(R"( {"b": [1, -2, true, null], "a": {"x": "y"}} )");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->text(), R"({"b":[1,-2,true,null],"a":{"x":"y"}})");
}

TEST(JsonParse, RefusesADuplicateKeyAtItsSecondPlace) {
  const std::string text = R"({"a": 1, "b": {"a": 2}, "a": 3})";
  const auto json = Json::parse(text);
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().offset, text.rfind("\"a\""));
  EXPECT_THAT(json.error().message, HasSubstr("\"a\""));
}

TEST(JsonParse, FindsDuplicatesThroughEscapes) {
  const std::string text = "{\"q\\\"\": 1, \"q\\u0022\": 2}";
  const auto json = Json::parse(text);
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().offset, 11U);
}

TEST(JsonParse, AllowsOneKeyInTwoObjects) {
  EXPECT_TRUE(Json::parse(R"([{"a": 1}, {"a": 2}, {"a": {"a": 3}}])"));
}

TEST(JsonParse, RefusesADepthBombWithoutRecursion) {
  const auto json = Json::parse(std::string(100'000, '['));
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().offset, 256U);
  EXPECT_FALSE(Json::parse(std::string(257, '[') + std::string(257, ']')));
  EXPECT_TRUE(Json::parse(std::string(256, '[') + std::string(256, ']')));
}

TEST(JsonParse, RefusesTrailingText) {
  const auto json = Json::parse("{} x");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().offset, 3U);
  EXPECT_FALSE(Json::parse("1 2"));
  EXPECT_TRUE(Json::parse("{} \n"));
}

TEST(JsonParse, RefusesANulThatEndsTheTextForOthers) {
  const auto json = Json::parse(std::string_view("1\0garbage", 9));
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().offset, 1U);
}

TEST(JsonParse, RefusesEveryPrefixOfAValue) {
  const std::string text = R"({"a": [1.5, "xA", true]})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto json = Json::parse(std::string_view(text).substr(0, size));
    ASSERT_FALSE(json) << size;
    EXPECT_LE(json.error().offset.value(), size);
  }
  EXPECT_TRUE(Json::parse(text));
}

TEST(JsonParse, RefusesNaNInfinityCommentsAndByteOrderMarks) {
  for (const char* text : {"NaN", "Infinity", "-Infinity", "[1,]", "{'a':1}", "// c\n1", "01", "+1",
                           ".5", "1e999", "\xef\xbb\xbf{}", "{\"a\" 1}", "\"\t\""})
    EXPECT_FALSE(Json::parse(text)) << text;
}

TEST(JsonParse, RefusesLoneSurrogatesAndInvalidUtf8) {
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800A")", "\"\xff\"", "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\""})
    EXPECT_FALSE(Json::parse(text)) << text;
  EXPECT_EQ(*Json::parse(R"("\ud83d\ude00")")->string(), "\xf0\x9f\x98\x80");
}

TEST(JsonParse, SaysWhatIsWrongWithoutTheLibrarysNames) {
  const auto json = Json::parse("[1, ?]");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().offset, 4U);
  EXPECT_THAT(json.error().message, HasSubstr("invalid JSON: syntax error"));
  EXPECT_THAT(json.error().message, testing::Not(HasSubstr("json.exception")));
}

TEST(JsonNumbers, TellIntegersFromFloats) {
  const auto one = Json::parse("1");
  const auto float_one = Json::parse("1.0");
  EXPECT_FALSE(one->is_float());
  EXPECT_EQ(one->integer(), 1);
  EXPECT_EQ(one->number(), 1.0);
  EXPECT_TRUE(float_one->is_float());
  EXPECT_EQ(float_one->integer(), std::nullopt);
  EXPECT_EQ(float_one->unsigned_integer(), std::nullopt);
  EXPECT_TRUE(Json::parse("1e2")->is_float());
}

TEST(JsonNumbers, KeepIntegersOf64BitsAndRefuseLargerOnes) {
  EXPECT_EQ(Json::parse("-9223372036854775808")->integer(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Json::parse("9223372036854775807")->integer(),
            std::numeric_limits<std::int64_t>::max());
  const auto large = Json::parse("9223372036854775808");
  EXPECT_EQ(large->integer(), std::nullopt);
  EXPECT_EQ(large->unsigned_integer(), 9223372036854775808U);
  EXPECT_EQ(Json::parse("18446744073709551615")->unsigned_integer(), 18446744073709551615U);
  const auto too_large = Json::parse("[18446744073709551616]");
  ASSERT_FALSE(too_large);
  EXPECT_THAT(too_large.error().message, HasSubstr("found 18446744073709551616"));
  EXPECT_FALSE(Json::parse("-9223372036854775809"));
  EXPECT_EQ(Json::parse("-1")->unsigned_integer(), std::nullopt);
}

TEST(JsonNumbers, OneIntegerIsFoundWhateverTypeItWasMadeFrom) {
  EXPECT_EQ(Json(std::uint64_t{5}).integer(), 5);
  EXPECT_EQ(Json(5).unsigned_integer(), 5U);
  EXPECT_EQ(Json(std::uint64_t{5}).text(), "5");
}

TEST(JsonText, WritesFloatsShortestAndAlwaysAsFloats) {
  EXPECT_EQ(Json(1.0).text(), "1.0");
  EXPECT_EQ(Json(-0.0).text(), "-0.0");
  EXPECT_EQ(Json(0.1).text(), "0.1");
  EXPECT_EQ(Json(1e22).text(), "1e+22");
  EXPECT_EQ(Json(5e-324).text(), "5e-324");
  EXPECT_EQ(Json(0.1 + 0.2).text(), "0.30000000000000004");
}

TEST(JsonText, FloatsReadBackToTheirBits) {
  for (const double value : {1.0, 1.0 / 3, 1e300, 123456789.0, 2.2250738585072014e-308, -1e16}) {
    const auto json = Json::parse(Json(value).text());
    ASSERT_TRUE(json);
    EXPECT_TRUE(json->is_float());
    EXPECT_EQ(json->number(), value);
  }
}

TEST(JsonText, WritesWhatIsNotFiniteAsNamesThatNumberReads) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Json(infinity).text(), "\"inf\"");
  EXPECT_EQ(Json::parse("\"-inf\"")->number(), -infinity);
  EXPECT_TRUE(std::isnan(Json::parse(Json(std::nan("")).text())->number().value()));
  EXPECT_EQ(Json("infinite").number(), std::nullopt);
}

TEST(JsonText, EscapesControlCharactersAndReadsThemBack) {
  std::string text;
  for (char character = 1; character < 0x20; ++character) text += character;
  text += "\"\\\x7f/";
  const std::string written = Json(text).text();
  EXPECT_EQ(written.find('\x1b'), std::string::npos);
  EXPECT_THAT(written, HasSubstr("\\u001b"));
  EXPECT_EQ(*Json::parse(written)->string(), text);
}

TEST(JsonText, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(Json("a\xff"
                 "b\xc3\xa9")
                .text(),
            "\"a\\ufffdb\xc3\xa9\"");
}

TEST(JsonText, IndentsWhenAsked) {
  Json json;
  json.set("a", Json::Array{1, 2}).set("b", Json::Object()).set("c", Json::Array());
  EXPECT_EQ(json.text(2), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": []\n}");
}

TEST(JsonWriter, WritesWhatTheValueWouldBe) {
  const Json value = Json::Object{
      {"name", "a \"b\"\n\xc3\xa9\x01"},
      {"rows",
       Json::Array{Json::Object{{"shape", Json::Array{1, 2}}, {"none", Json()}}, Json::Object{}}},
      {"empty", Json::Array{}},
      {"last", Json::Object{{"deep", Json::Array{Json::Object{{"x", 1.5}}}}}}};
  std::ostringstream out;
  JsonWriter json(out);
  json.begin_object();
  json.text("name", *value.find("name")->string());
  json.begin_array("rows");
  json.begin_object();
  json.member("shape", Json::Array{1, 2});
  json.member("none", Json());
  json.end();
  json.begin_object();
  json.end();
  json.end();
  json.begin_array("empty");
  json.end();
  json.member("last", *value.find("last"));
  json.end();
  EXPECT_EQ(out.str(), value.text(2) + "\n");
}

TEST(JsonWriter, HandsOnMoreThanItKeeps) {
  Json::Array rows;
  std::ostringstream out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("rows");
  for (int i = 0; i < 10'000; ++i) {
    rows.push_back(Json::Object{{"number", i}});
    json.begin_object();
    json.member("number", i);
    json.end();
  }
  EXPECT_FALSE(out.str().empty());
  json.end();
  json.end();
  EXPECT_EQ(out.str(), Json(Json::Object{{"rows", std::move(rows)}}).text(2) + "\n");
}

TEST(Json, FindsMembersOfObjectsOnly) {
  const auto json = Json::parse(R"({"a": 1})");
  EXPECT_EQ(json->find("a")->integer(), 1);
  EXPECT_EQ(json->find("b"), nullptr);
  EXPECT_EQ(Json(3).find("a"), nullptr);
}

TEST(JsonDeathTest, SettingAKeyTwiceIsOurBug) {
  Json json;
  json.set("a", 1);
  EXPECT_EXIT(json.set("a", 2), testing::ExitedWithCode(70), "find\\(key\\) == nullptr");
}

}  // namespace
}  // namespace ckptverify
