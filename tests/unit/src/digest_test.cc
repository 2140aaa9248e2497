// The C interface must be the C++ digests, and the library that carries it must show nothing else.
#include "ckptverify/digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>

#include "ckptverify/fingerprint.h"

namespace ckptverify {
namespace {

std::string text_of(ckptverify_digest digest) {
  char text[33];
  ckptverify_digest_text(digest, text);
  return text;
}

TEST(DigestLibrary, HashesPlainBytesAsXxh3) {
  // The empty input's XXH3-128, from xxHash's own documentation of its test vectors.
  EXPECT_EQ(text_of(ckptverify_bytes_digest(nullptr, 0)), "99aa06d3014798d86001c324468d497f");
  const std::string text = "batch";
  EXPECT_EQ(text_of(ckptverify_bytes_digest(text.data(), text.size())),
            hash_bytes(as_bytes(text)).hex());
}

TEST(DigestLibrary, HashesTensorsAsTheFingerprintDoes) {
  const std::vector<std::byte> data(3 * (std::size_t{1} << 20) + 8, std::byte{7});
  const std::array<std::uint64_t, 2> shape = {2, data.size() / 8};
  EXPECT_EQ(text_of(ckptverify_tensor_digest("float32", 2, shape.data(), data.data(), data.size())),
            tensor_digest("float32", shape, data).hex());
  EXPECT_EQ(text_of(ckptverify_tensor_digest("int64", 0, nullptr, data.data(), 8)),
            tensor_digest("int64", {}, Bytes(data).first(8)).hex());
}

TEST(DigestLibrary, HashesEveryKindOfValue) {
  EXPECT_EQ(text_of(ckptverify_null_digest()), value_digest(Null{}).hex());
  EXPECT_EQ(text_of(ckptverify_bool_digest(0)), value_digest(false).hex());
  EXPECT_EQ(text_of(ckptverify_bool_digest(2)), value_digest(true).hex());
  EXPECT_EQ(text_of(ckptverify_int_digest(std::numeric_limits<std::int64_t>::min())),
            value_digest(std::numeric_limits<std::int64_t>::min()).hex());
  EXPECT_EQ(text_of(ckptverify_float_digest(0.1)), value_digest(0.1).hex());
  EXPECT_EQ(text_of(ckptverify_string_digest("a\0b", 3)),
            value_digest(std::string("a\0b", 3)).hex());
  EXPECT_EQ(text_of(ckptverify_string_digest(nullptr, 0)), value_digest(std::string()).hex());
  EXPECT_EQ(text_of(ckptverify_blob_digest("\xff", 1)),
            value_digest(ByteString{{std::byte{0xff}}}).hex());
  EXPECT_EQ(text_of(ckptverify_empty_list_digest()), value_digest(EmptyList{}).hex());
  EXPECT_EQ(text_of(ckptverify_empty_map_digest()), value_digest(EmptyMap{}).hex());
}

TEST(DigestLibrary, TellsTypesOfEqualNumbersApart) {
  EXPECT_NE(text_of(ckptverify_int_digest(1)), text_of(ckptverify_float_digest(1.0)));
  EXPECT_NE(text_of(ckptverify_int_digest(1)), text_of(ckptverify_bool_digest(1)));
  EXPECT_NE(text_of(ckptverify_string_digest("a", 1)), text_of(ckptverify_blob_digest("a", 1)));
}

TEST(DigestLibrary, JoinsAComponentInAnyOrder) {
  const ckptverify_digest one = ckptverify_int_digest(1);
  const ckptverify_digest two = ckptverify_int_digest(2);
  const char* paths[] = {"b", "a"};
  const ckptverify_digest digests[] = {one, two};
  const char* sorted_paths[] = {"a", "b"};
  const ckptverify_digest sorted_digests[] = {two, one};
  const std::string joined = text_of(ckptverify_component_digest(2, paths, digests));
  EXPECT_EQ(joined, text_of(ckptverify_component_digest(2, sorted_paths, sorted_digests)));
  EXPECT_EQ(joined, component_digest({{"a", value_digest(std::int64_t{2})},
                                      {"b", value_digest(std::int64_t{1})}})
                        .hex());
  EXPECT_NE(joined, text_of(ckptverify_component_digest(2, sorted_paths, digests)));
}

}  // namespace
}  // namespace ckptverify
