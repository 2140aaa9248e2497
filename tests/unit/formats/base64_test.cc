// The vectors of RFC 4648, section 10, and texts that are none.
#include "formats/encoding/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ckptverify {
namespace {

std::string decoded(std::string_view text) {
  const auto bytes = decode_base64(text);
  if (!bytes) return "none";
  std::string out;
  for (const std::byte byte : *bytes) out += static_cast<char>(byte);
  return out;
}

TEST(Base64, DecodesTheVectorsOfItsRfc) {
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9v"), "foo");
  EXPECT_EQ(decoded("Zm9vYg=="), "foob");
  EXPECT_EQ(decoded("Zm9vYmFy"), "foobar");
}

TEST(Base64, RefusesWhatIsNone) {
  for (const std::string_view text : {"Zg", "Zg=", "Z===", "Zm9*", "Zh==", "=Zg="})
    EXPECT_EQ(decoded(text), "none") << text;
}

}  // namespace
}  // namespace ckptverify
