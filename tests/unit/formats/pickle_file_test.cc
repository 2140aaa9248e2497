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

}  // namespace
}  // namespace ckptverify
