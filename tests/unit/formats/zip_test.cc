#include "formats/container/zip.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/formats/torch_fixture.h"

namespace ckptverify {
namespace {

using testing::little;
using testing::small_zip;

Result<ZipArchive> read(const std::string& text) {
  return read_zip({.bytes = as_bytes(text)});
}

void expect_error(const std::string& text, CauseKind cause, std::uint64_t offset) {
  const auto zip = read(text);
  ASSERT_FALSE(zip) << "accepted";
  ASSERT_TRUE(zip.error().cause) << zip.error().text();
  EXPECT_EQ(zip.error().cause->kind, cause) << zip.error().text();
  EXPECT_EQ(zip.error().offset, offset) << zip.error().text();
}

void expect_finding(const std::string& text, CauseKind cause, std::uint64_t offset) {
  const auto zip = read(text);
  ASSERT_TRUE(zip) << zip.error().text();
  ASSERT_EQ(zip->findings.size(), 1U);
  EXPECT_EQ(zip->findings[0].status, Status::kFail);
  EXPECT_EQ(zip->findings[0].cause, (Cause{cause}));
  EXPECT_EQ(zip->findings[0].evidence[0].value, std::to_string(offset)) << zip->findings[0].message;
}

std::string patched(std::string text, std::uint64_t offset, std::string_view bytes) {
  return text.replace(offset, bytes.size(), bytes);
}

const auto kTwo = small_zip({{"a/x", "first"}, {"a/y", "second"}});
// PyTorch's own: descriptors, padding, zip64 records.
std::string real() {
  return testing::torch_fixture_text("torch-zip/good/shared.pt");
}

TEST(Zip, ListsEntriesInTheDirectorysOrder) {
  const auto zip = read(kTwo.bytes);
  ASSERT_TRUE(zip) << zip.error().text();
  ASSERT_EQ(zip->entries.size(), 2U);
  EXPECT_EQ(zip->entries[1].name, "a/y");
  EXPECT_EQ(zip->entries[1].size, 6U);
  EXPECT_EQ(zip->entries[1].payload_offset, kTwo.header_offsets[1] + 33);
  EXPECT_TRUE(zip->findings.empty());
}

TEST(Zip, OwnsEveryByteThatIsNoPayload) {
  for (const std::string& text : {kTwo.bytes, real()}) {
    const auto zip = read(text);
    ASSERT_TRUE(zip) << zip.error().text();
    EXPECT_TRUE(zip->findings.empty());
    Coverage coverage;
    for (const OwnedRange& range : zip->framing) coverage.own(range);
    for (const ZipEntry& entry : zip->entries) {
      coverage.own({{0, entry.payload_offset, entry.stored_size}, Owner::kTensor, entry.name});
    }
    const std::uint64_t size = text.size();
    EXPECT_TRUE(coverage.gaps({&size, 1}).empty());
    EXPECT_TRUE(coverage.overlaps().empty());
    // 2 of made-by version and 6 of attributes an entry, 4 of versions in a zip64 record.
    const bool zip64 = text.size() != kTwo.bytes.size();
    EXPECT_EQ(coverage.size(Owner::kUnverifiable), 8 * zip->entries.size() + (zip64 ? 4 : 0));
  }
}

TEST(Zip, CallsAMissingEndACut) {
  expect_error(real().substr(0, 1000), CauseKind::kTrunc, 1000);
  expect_error(kTwo.bytes.substr(0, kTwo.bytes.size() - 1), CauseKind::kTrunc,
               kTwo.bytes.size() - 1);
  expect_error("", CauseKind::kTrunc, 0);
  std::string zero_tail = kTwo.bytes;
  zero_tail.replace(zero_tail.size() - 30, 30, 30, '\0');
  expect_error(zero_tail, CauseKind::kTrunc, zero_tail.size());
}

TEST(Zip, SaysBytesAndWritesSignaturesInHexadecimal) {
  EXPECT_EQ(
      read(kTwo.bytes.substr(0, 60)).error().message,
      "zip archive has no end of central directory; found 60 bytes without one, expected it as "
      "the last 22 bytes");
  EXPECT_EQ(read(patched(kTwo.bytes, kTwo.header_offsets[1] + 2, "\7")).error().message,
            "zip entry a/y has no local header; found 0x04074b50, expected 0x04034b50");
  EXPECT_EQ(read(patched(kTwo.bytes, kTwo.directory_offset + 2, "\7")).error().message,
            "zip directory entry has no signature; found 0x02074b50, expected 0x02014b50");
}

TEST(Zip, FindsBytesAfterTheEnd) {
  expect_finding(kTwo.bytes + "xyz", CauseKind::kLayout, kTwo.bytes.size());
}

TEST(Zip, RefusesBytesBeforeTheBeginning) {
  expect_error("junk" + kTwo.bytes, CauseKind::kLayout, 0);
  expect_error("junk" + real(), CauseKind::kLayout, real().rfind("PK\6\6"));
}

TEST(Zip, RefusesTwoArchivesInOne) {
  expect_error(kTwo.bytes + kTwo.bytes, CauseKind::kLayout, 0);
}

TEST(Zip, RefusesDuplicateNames) {
  const auto zip = small_zip({{"a/x", "1"}, {"a/x", "2"}});
  expect_error(zip.bytes, CauseKind::kLayout, zip.header_offsets[1]);
}

TEST(Zip, RefusesNamesThatDifferByCaseAlone) {
  const auto zip = small_zip({{"a/data.pkl", "1"}, {"a/DATA.pkl", "2"}});
  expect_error(zip.bytes, CauseKind::kLayout, zip.header_offsets[1]);
}

TEST(Zip, RefusesNamesThatLeaveTheArchive) {
  for (const std::string name : {"/a", "a/../../b", "..", "a\\..\\b", ""}) {
    expect_error(small_zip({{name, "1"}}).bytes, CauseKind::kLayout, 30);
  }
}

TEST(Zip, RefusesOverlappingEntries) {
  // The second entry of the directory points to the first entry's header.
  const std::uint64_t second = kTwo.directory_offset + 49;
  auto bad = patched(kTwo.bytes, second + 42, little(0, 4));
  bad = patched(bad, second + 16, kTwo.bytes.substr(14, 12));  // its CRC and sizes
  bad = patched(bad, second + 46, "a/x");
  expect_error(bad, CauseKind::kLayout, 0);
}

TEST(Zip, FindsALocalHeaderThatContradictsTheDirectory) {
  expect_finding(patched(kTwo.bytes, 4, "\x14"), CauseKind::kBitrot, 4);    // version
  expect_finding(patched(kTwo.bytes, 10, "\x01"), CauseKind::kBitrot, 10);  // time
  expect_finding(patched(kTwo.bytes, 14, "zz"), CauseKind::kBitrot, 14);    // CRC
  expect_finding(patched(kTwo.bytes, 22, "\x09"), CauseKind::kBitrot, 22);  // size
}

TEST(Zip, RefusesALocalNameThatIsNotTheDirectorys) {
  expect_error(patched(kTwo.bytes, 30, "b"), CauseKind::kBitrot, 30);
}

TEST(Zip, RefusesALostLocalHeader) {
  expect_error(patched(kTwo.bytes, 0, "X"), CauseKind::kBitrot, 0);
}

TEST(Zip, FindsADescriptorThatContradictsTheDirectory) {
  const std::string text = real();
  const std::uint64_t descriptor = text.find("PK\7\10");
  ASSERT_NE(descriptor, std::string::npos);
  expect_finding(patched(text, descriptor, "Q"), CauseKind::kBitrot, descriptor);
  expect_finding(patched(text, descriptor + 4, "\x01\x02\x03\x04"), CauseKind::kBitrot,
                 descriptor + 4);
}

TEST(Zip, FindsPaddingThatIsNotZ) {
  const std::string text = real();
  const std::uint64_t padding = text.find("ZZZZ");
  expect_finding(patched(text, padding + 2, "Y"), CauseKind::kBitrot, padding + 2);
}

TEST(Zip, FindsAnUnknownExtraField) {
  const std::string text = real();
  const std::uint64_t padding = text.find("FB");
  expect_finding(patched(text, padding, "G"), CauseKind::kLayout, padding);
}

TEST(Zip, DoesNotReadOtherMethodsOrEncryption) {
  struct Field {
    std::uint64_t directory, local;
    std::string value;
  };
  for (const Field& field : {Field{10, 8, "\x0c"}, Field{8, 6, "\x01"}}) {
    const auto half = patched(kTwo.bytes, kTwo.directory_offset + field.directory, field.value);
    const auto damaged = read(half);  // the local header says something else
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().cause, (Cause{CauseKind::kBitrot}));
    EXPECT_EQ(damaged.error().offset, field.local);
    const auto zip = read(patched(half, field.local, field.value));
    ASSERT_FALSE(zip);
    EXPECT_EQ(zip.error().kind, ErrorKind::kUnsupported);
    EXPECT_EQ(zip.error().offset, field.local);
  }
}

TEST(Zip, RefusesMoreEntriesThanTheDirectoryHasRoomFor) {
  const std::uint64_t end = kTwo.bytes.size() - 22;
  const auto bad = patched(kTwo.bytes, end + 8, little(0x7fff, 2) + little(0x7fff, 2));
  expect_error(bad, CauseKind::kLayout, kTwo.directory_offset);
}

TEST(Zip, RefusesAPayloadThatRunsIntoTheDirectory) {
  auto bad = patched(kTwo.bytes, kTwo.directory_offset + 49 + 20, little(7, 4) + little(7, 4));
  expect_error(bad, CauseKind::kTrunc, kTwo.header_offsets[1] + 33);
}

TEST(Deflate, RefusesASizeThatTheStreamCannotReach) {
  const auto bytes = inflate(as_bytes("\x03"), 5000);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().cause, (Cause{CauseKind::kLayout}));
}

TEST(Deflate, DecodesAStoredBlockExactly) {
  const std::string stream = std::string("\x01\x03\x00\xfc\xff", 5) + "abc";
  const auto bytes = inflate(as_bytes(stream), 3);
  ASSERT_TRUE(bytes) << bytes.error().text();
  EXPECT_EQ(as_text(*bytes), "abc");
  EXPECT_FALSE(inflate(as_bytes(stream), 4));
  EXPECT_FALSE(inflate(as_bytes(stream), 2));
  EXPECT_EQ(crc32_of_deflated(as_bytes(stream)), crc32_text(crc32(as_bytes("abc"))));
}

TEST(Deflate, ComputesTheUsualCrc) {
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926U);
}

}  // namespace
}  // namespace ckptverify
