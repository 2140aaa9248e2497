// safetensors against a real file, and one bad file for each rule.
#include "formats/safetensors.h"

#include "tests/unit/formats/format_fixture.h"

namespace ckptverify {
namespace {

using fixture::FileBytes;
using testing::HasSubstr;

/// A file of that header, padded to a multiple of 8 as the writer does, and a buffer of zeros.
FileBytes file_of(std::string header, std::size_t buffer_size) {
  while (header.size() % 8 != 0) header += ' ';
  FileBytes bytes;
  for (unsigned i = 0; i < 8; ++i)
    bytes.push_back(static_cast<std::byte>(std::uint64_t{header.size()} >> (8 * i) & 0xff));
  const Bytes text = as_bytes(header);
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.resize(bytes.size() + buffer_size);
  return bytes;
}

Result<Checkpoint> read_bytes(FileBytes bytes) {
  return read_safetensors(Source::memory("x.safetensors", std::move(bytes)), formats());
}

struct BadCase {
  std::string name;
  FileBytes bytes;
  std::string cause;
  std::uint64_t offset;
  std::string message;
};

void PrintTo(const BadCase& bad, std::ostream* out) {
  *out << bad.name;
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

FileBytes with_size(std::uint64_t size) {
  FileBytes bytes = file_of("{}", 0);
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

FileBytes longer(FileBytes bytes, std::size_t by) {
  bytes.resize(bytes.size() + by);
  return bytes;
}

FileBytes cut(FileBytes bytes, std::size_t by) {
  return {bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(by)};
}

std::vector<BadCase> bad_cases() {
  const auto one = [](const std::string& description, std::size_t size = 8) {
    return file_of("{" + description + "}", size);
  };
  const std::string f32 = tensor("a", "F32", "[2]", "[0,8]");
  return {
      {"NoSize", FileBytes(7), "trunc", 7, "found 7 bytes, expected 8"},
      {"SizeOverLimit", with_size(100'000'001), "st-struct", 0,
       "header is too large; found 100000001 bytes, expected at most 100000000"},
      {"SizeOverFile", with_size(9), "trunc", 16,
       "file ends before the header does; found 16 bytes, expected 17"},
      {"NoBrace", file_of("[]", 0), "st-struct", 8, "found byte 91, expected 123"},
      {"NoJson", file_of("{\"a\":}", 0), "st-struct", 13, "header is no strict JSON"},
      {"NoUtf8", file_of("{\"\xff\":1}", 0), "st-struct", 10, "header is no strict JSON"},
      {"TwoEqualNames", one(f32 + "," + f32), "st-struct", 62, "given twice"},
      {"NoObject", one("\"a\":1"), "st-struct", 9, "found 1, expected an object"},
      {"UnknownKey", one("\"a\":{\"dtype\":\"F32\",\"x\":1}"), "st-struct", 9,
       "unknown key; found 'x', expected dtype, shape or data_offsets"},
      {"NoDtype", one("\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}"), "st-struct", 9,
       "wrong dtype; found nothing, expected a string"},
      {"UnknownDtype", one(tensor("a", "F99", "[2]", "[0,8]")), "st-struct", 9,
       "wrong dtype; found \"F99\", expected a type of the format"},
      {"NegativeDimension", one(tensor("a", "F32", "[-2]", "[0,8]")), "st-struct", 9,
       "wrong shape; found [-2], expected a list of unsigned integers"},
      {"FloatOffset", one(tensor("a", "F32", "[2]", "[0,8.0]")), "st-struct", 9,
       "wrong data_offsets; found [0,8.0]"},
      {"ThreeOffsets", one(tensor("a", "F32", "[2]", "[0,4,8]")), "st-struct", 9,
       "wrong data_offsets; found [0,4,8], expected two integers"},
      {"EndBeforeBegin", one(tensor("a", "F32", "[2]", "[8,0]")), "st-struct", 9,
       "ends before it begins; found end 0, expected at least 8"},
      {"FirstNotAtZero", one(tensor("a", "F32", "[1]", "[4,8]")), "st-struct", 9,
       "leaves a hole before it; found begin 4, expected 0"},
      {"Hole", one(tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("b", "U8", "[3]", "[5,8]")),
       "st-struct", 62, "tensor 'b': leaves a hole before it; found begin 5, expected 4"},
      {"Overlap", one(tensor("a", "F32", "[1]", "[0,4]") + "," + tensor("b", "U8", "[5]", "[3,8]")),
       "st-struct", 62, "tensor 'b': overlaps the one before it; found begin 3, expected 4"},
      {"Overflow", one(tensor("a", "F32", "[4294967296,4294967296]", "[0,8]")), "st-struct", 9,
       "size of the shape does not fit 64 bits"},
      {"InsideAByte", one(tensor("a", "F4", "[3]", "[0,8]")), "st-struct", 9,
       "shape ends inside a byte; found 12 bits, expected a multiple of 8"},
      {"WrongSize", one(tensor("a", "F32", "[3]", "[0,8]")), "st-struct", 9,
       "size does not match shape and dtype; found 8 bytes, expected 12"},
      {"Trailing", longer(one(f32), 3), "st-struct", 72,
       "bytes follow the last tensor; found a file of 75 bytes, expected 72"},
      {"CutTensor", cut(one(f32), 1), "trunc", 71,
       "file ends before the last tensor does; found 71 bytes, expected 72"},
      {"MetadataNoObject", one("\"__metadata__\":3", 0), "st-struct", 9,
       "__metadata__ is no object; found 3"},
      {"MetadataNoString", one("\"__metadata__\":{\"step\":3}", 0), "st-struct", 9,
       "__metadata__ 'step' is no string; found 3, expected a string"},
      {"PaddingNoSpace", file_of("{}\t\x01     ", 0), "st-struct", 11, "header is no strict JSON"},
  };
}

class SafetensorsRejects : public testing::TestWithParam<BadCase> {};

TEST_P(SafetensorsRejects, WithItsCauseMessageAndOffset) {
  const BadCase& bad = GetParam();
  const auto result = read_bytes(bad.bytes);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kMalformed);
  EXPECT_EQ(fixture::cause_of(result.error()), bad.cause);
  EXPECT_THAT(result.error().message, HasSubstr(bad.message));
  EXPECT_EQ(result.error().offset, bad.offset) << result.error().message;
}

INSTANTIATE_TEST_SUITE_P(Rules, SafetensorsRejects, testing::ValuesIn(bad_cases()),
                         [](const auto& row) { return row.param.name; });

TEST(Safetensors, ReadsWhatTheRealWriterWrote) {
  const auto source = Source::open(fixture::good("safetensors/good/dtypes.safetensors"));
  ASSERT_TRUE(source);
  const auto checkpoint = formats().read(*source);
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_EQ(checkpoint->format, "safetensors");
  EXPECT_EQ(checkpoint->entries.size(), 13U);
  fixture::expect_oracle(*checkpoint, fixture::good("safetensors/good/dtypes.oracle.json"));
  fixture::expect_whole_coverage(*checkpoint);
}

TEST(Safetensors, CountsPackedFloat4AsPyTorchDoes) {
  const auto checkpoint = read_bytes(file_of("{" + tensor("a", "F4", "[3,4]", "[0,6]") + "}", 6));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  const auto& packed = std::get<Tensor>(find_entry(*checkpoint, "a")->node);
  EXPECT_EQ(dtype_name(packed.dtype), "float4_e2m1fn_x2");
  EXPECT_EQ(packed.shape, (std::vector<std::uint64_t>{3, 2}));
}

TEST(Safetensors, ListsSixBitFloatsAsUninterpretedAndOwnsTheirBytes) {
  const auto checkpoint =
      read_bytes(file_of("{" + tensor("a", "F6_E2M3", "[4]", "[0,3]") + "}", 3));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  EXPECT_TRUE(checkpoint->entries.empty());
  ASSERT_EQ(checkpoint->uninterpreted.size(), 1U);
  EXPECT_THAT(checkpoint->uninterpreted[0], HasSubstr("tensor 'a': PyTorch has no F6_E2M3"));
  EXPECT_EQ(checkpoint->coverage.size(Owner::kTensor), 3U);
}

TEST(Safetensors, OwnsFreeTextAsUnverifiableAndNothingElse) {
  const auto checkpoint = read_bytes(file_of(
      "{\"__metadata__\" : {\"a\\\"}\": \"x,y\"} , " + tensor("b", "U8", "[1]", "[0,1]") + "}", 1));
  ASSERT_TRUE(checkpoint) << checkpoint.error().text();
  // From the key's quotation mark to the closing brace of its value.
  EXPECT_EQ(checkpoint->coverage.size(Owner::kUnverifiable), 32U);
  EXPECT_EQ(fixture::owner_of(*checkpoint, 0, 9), Owner::kUnverifiable);
  EXPECT_EQ(fixture::owner_of(*checkpoint, 0, 40), Owner::kUnverifiable);
  EXPECT_EQ(fixture::owner_of(*checkpoint, 0, 41), Owner::kMetadata);
}

TEST(Safetensors, IsNotFooledByOtherBeginnings) {
  EXPECT_FALSE(sniff_safetensors(Source::memory("a", FileBytes(9))));
  EXPECT_FALSE(sniff_safetensors(Source::memory("a", with_size(100'000'001))));
  EXPECT_TRUE(sniff_safetensors(Source::memory("a", file_of("{}", 0))));
}

TEST(Safetensors, RefusesEveryPrefix) {
  const FileBytes good = fixture::read_file(fixture::good("safetensors/good/dtypes.safetensors"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto result =
        read_bytes({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_FALSE(result) << size;
    ASSERT_EQ(fixture::cause_of(result.error()), "trunc") << size;
  }
}

TEST(Safetensors, NoticesEveryFlippedByteButThoseOfFreeText) {
  const FileBytes good = fixture::read_file(fixture::good("safetensors/good/dtypes.safetensors"));
  const auto checkpoint = read_bytes(good);
  ASSERT_TRUE(checkpoint);
  const Digest whole = fingerprint(*checkpoint, Threads{1})->whole;
  for (const unsigned pattern : {0x01U, 0xffU}) {
    for (std::size_t i = 0; i < good.size(); ++i) {
      FileBytes bytes = good;
      bytes[i] ^= static_cast<std::byte>(pattern);
      if (fixture::notices(read_bytes(std::move(bytes)), whole)) continue;
      ASSERT_EQ(fixture::owner_of(*checkpoint, 0, i), Owner::kUnverifiable)
          << "byte " << i << " xor " << pattern;
    }
  }
}

}  // namespace
}  // namespace ckptverify
