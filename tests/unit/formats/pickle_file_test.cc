#include "formats/pickle_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/formats/every_flip.h"
#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using testing::byte_vector;
using testing::pickle_string;
using testing::pickled;

const std::string kGood = "pickle/good/";

Result<Checkpoint> read(const std::string& text) {
  return read_pickle_file(Source::memory("file", byte_vector(text)), FormatTable({}));
}
bool sniffs(const std::string& text) {
  return sniff_pickle_file(Source::memory("file", byte_vector(text)));
}

TEST(PickleFile, AgreesWithPythonOnRealFiles) {
  for (const std::string name :
       {"protocol_0.pkl", "protocol_1.pkl", "protocol_2.pkl", "protocol_3.pkl", "protocol_4.pkl",
        "protocol_5.pkl", "random.pkl", "views.pkl"}) {
    SCOPED_TRACE(name);
    const std::string text = testing::torch_fixture_text(kGood + name);
    EXPECT_TRUE(sniffs(text));
    auto checkpoint = read(text);
    ASSERT_TRUE(checkpoint) << checkpoint.error().text();
    testing::expect_oracle(*checkpoint, kGood + name + ".json");
    EXPECT_FALSE(testing::is_reported(*std::move(checkpoint)));
  }
}

TEST(PickleFile, GivesOneStateOneFingerprintInAllProtocols) {
  const auto first = read(testing::torch_fixture_text(kGood + "protocol_0.pkl"));
  ASSERT_TRUE(first) << first.error().text();
  for (const char protocol : std::string("12345")) {
    const auto other = read(testing::torch_fixture_text(kGood + "protocol_" + protocol + ".pkl"));
    ASSERT_TRUE(other) << other.error().text();
    EXPECT_EQ(fingerprint(*first)->whole, fingerprint(*other)->whole) << protocol;
  }
}

TEST(PickleFile, RecognisesNoText) {
  EXPECT_FALSE(sniffs(""));
  EXPECT_FALSE(sniffs("version https://git-lfs.github.com/spec/v1\n"));
  EXPECT_FALSE(sniffs("<!DOCTYPE html>"));
  EXPECT_FALSE(sniffs("{}"));
  EXPECT_FALSE(sniffs("N.."));
  EXPECT_FALSE(sniffs("\x80\x06N."));
  EXPECT_TRUE(sniffs("(dp0\nS'a'\nI1\ns."));
  EXPECT_TRUE(sniffs("\x80\x04N"));
}

TEST(PickleFile, RefusesEveryPrefix) {
  const std::string text = testing::torch_fixture_text(kGood + "protocol_4.pkl").substr(0, 600);
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto checkpoint = read(text.substr(0, size));
    ASSERT_FALSE(checkpoint) << size;
    EXPECT_EQ(checkpoint.error().cause, (Cause{CauseKind::kTrunc})) << size;
  }
}

TEST(PickleFile, FindsBytesAfterThePickle) {
  const auto checkpoint = read(pickled("N") + "more");
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 1U);
  EXPECT_EQ(checkpoint->findings[0].cause, (Cause{CauseKind::kLayout}));
  EXPECT_EQ(checkpoint->findings[0].evidence[0].value, "4");
}

TEST(PickleFile, RefusesAStorageThatIsNotInTheFile) {
  const auto checkpoint = read(pickled(testing::pickle_tensor()));
  ASSERT_FALSE(checkpoint);
  EXPECT_EQ(checkpoint.error().cause, (Cause{CauseKind::kPickleDep}));
}

TEST(PickleFile, RefusesADamagedFileInsideOfThePickle) {
  const auto checkpoint = read(
      "\x80\x03"
      "ctorch.storage\n_load_from_bytes\nC\3abc\x85R.");
  ASSERT_FALSE(checkpoint);
  EXPECT_NE(checkpoint.error().text().find("inside of the pickle"), std::string::npos);
}

TEST(PickleFile, FindsEveryItemOfALongListUnderItsIndex) {
  for (const int count : {1, 2, 9, 10, 11, 19, 20, 101, 125}) {
    std::string body = "](";
    for (int i = 0; i < count; ++i) body += "K" + std::string(1, static_cast<char>(i));
    const auto checkpoint = read(pickled(body + "e"));
    ASSERT_TRUE(checkpoint) << checkpoint.error().text();
    ASSERT_EQ(checkpoint->entries.size(), static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const Entry* entry = find_entry(*checkpoint, std::to_string(i));
      ASSERT_NE(entry, nullptr) << i << " of " << count;
      EXPECT_EQ(std::get<Value>(entry->node), Value(i)) << count;
    }
  }
}

/// A list of one thing again and again, a byte each.
std::string repeated(const std::string& thing) {
  return "](" + thing + std::string(100'000, '2') + "e";
}

std::string many(std::size_t count, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(PickleFile, RefusesWhatAFewBytesUnfoldTo) {
  const std::string text = pickle_string(std::string(50'000, 'a'));
  const std::string bytes = "B" + testing::little(50'000, 4) + std::string(50'000, 'a');
  const std::string object = "cm\nC\n)\x81";
  const auto module = [&](const std::string& parameters) {
    return object + "}(" + pickle_string("_parameters") + parameters + pickle_string("_modules") +
           "}ub";
  };
  const std::string nothing = "}(" + many(20'000, "K\1N") + "u";
  for (const std::string& thing :
       {text, bytes, "}" + text + "Ns",
        "c_codecs\nencode\n" + text + pickle_string("latin1") + "\x86R",
        "ctorch\ndevice\n" + text + "\x85R", module(nothing), module("}") + many(20'000, "Nb"),
        object + "}" + text + text + "sb",
        "}(" + text + "r" + testing::little(0, 4) + "N" +
            many(20'000, "j" + testing::little(0, 4) + "N") + "u"}) {
    const auto checkpoint = read(pickled(repeated(thing)));
    ASSERT_FALSE(checkpoint) << thing.substr(0, 20);
    EXPECT_EQ(checkpoint.error().kind, ErrorKind::kUnsupported) << checkpoint.error().text();
  }
}

TEST(PickleFile, ListsTheFirstOfKeysThatAreSetTwice) {
  const auto checkpoint = read(pickled("}(" + many(1'001, "K\1N") + "u"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->findings.size(), 65U);
  EXPECT_EQ(checkpoint->findings[0].subject, "1");
  EXPECT_EQ(checkpoint->findings[64].message, "and 936 more keys that dictionaries set twice");
}

TEST(PickleFile, CutsAKeyThatUnfoldsWithoutEnd) {
  std::string key = "N";
  for (int level = 0; level < 4; ++level) key = "(" + key + std::string(1'000, '2') + "t";
  const auto checkpoint = read(pickled("}" + key + "K\1s"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  ASSERT_EQ(checkpoint->entries.size(), 1U);
  EXPECT_TRUE(checkpoint->entries[0].path.starts_with("((((None, None, "));
  EXPECT_LT(checkpoint->entries[0].path.size(), 4'200U);
}

}  // namespace
}  // namespace ckptverify
