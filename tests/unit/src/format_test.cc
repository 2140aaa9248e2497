// Which format reads a source, and what is said when none does.
#include "ckptverify/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace ckptverify {
namespace {

using testing::HasSubstr;

Source file(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return Source::memory("a.pt", {bytes.begin(), bytes.end()});
}

bool begins_with_x(const Source& source) {
  return as_text(source.bytes()).substr(0, 1) == "x";
}
bool begins_with_xy(const Source& source) {
  return as_text(source.bytes()).substr(0, 2) == "xy";
}

Result<Checkpoint> read_first(const Source&, const FormatTable&) {
  Checkpoint checkpoint;
  checkpoint.format = "first";
  return checkpoint;
}

Result<Checkpoint> read_broken(const Source&, const FormatTable&) {
  return Error{.message = "found 1, expected 2", .offset = 3};
}

constexpr std::array kRows = {
    Format{"broken", "", "", "", begins_with_xy, read_broken},
    Format{"first", "", "", "", begins_with_x, read_first},
};
constexpr FormatTable kTable(kRows);

Error error_of(const Source& source) {
  auto checkpoint = kTable.read(source);
  EXPECT_FALSE(checkpoint);
  return checkpoint ? Error{} : std::move(checkpoint).error();
}

TEST(FormatTable, AsksInOrder) {
  EXPECT_EQ(kTable.recognise(file("xy"))->name, "broken");
  EXPECT_EQ(kTable.recognise(file("xz"))->name, "first");
  EXPECT_EQ(kTable.recognise(file("z")), nullptr);
  EXPECT_EQ(kTable.read(file("x"))->format, "first");
}

TEST(FormatTable, ErrorsNameTheSource) {
  EXPECT_EQ(error_of(file("xy")).text(), "a.pt: byte 3: found 1, expected 2");
}

TEST(FormatTable, AnUnknownFormatIsUnsupportedAndNotMalformed) {
  const Error error = error_of(file("unknown"));
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(error.cause, std::nullopt);
  EXPECT_EQ(error.subject, "a.pt");
  EXPECT_EQ(error_of(Source::memory_directory("d", {})).kind, ErrorKind::kUnsupported);
}

TEST(FormatTable, AnEmptyFileIsTruncated) {
  const Error error = error_of(file(""));
  EXPECT_EQ(error.kind, ErrorKind::kMalformed);
  EXPECT_EQ(error.cause->id(), "trunc");
}

TEST(FormatTable, PointersAndPagesAreImpostors) {
  for (const char* text : {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n",
                           "<!DOCTYPE html>\n<html lang=\"en\">", "\n  <HTML><head>",
                           "<?xml version=\"1.0\"?><Error>"}) {
    const Error error = error_of(file(text));
    EXPECT_EQ(error.kind, ErrorKind::kMalformed) << text;
    ASSERT_TRUE(error.cause) << text;
    EXPECT_EQ(error.cause->id(), "impostor") << text;
  }
  EXPECT_THAT(error_of(file("version https://git-lfs.github.com/spec/v1\n")).message,
              HasSubstr("a Git LFS pointer"));
}

TEST(FormatTable, ABeginningThatIsAlmostAPageIsUnknown) {
  for (const char* text : {"<htm", "version https://git-lfs.example/", "   ", "html"})
    EXPECT_EQ(error_of(file(text)).kind, ErrorKind::kUnsupported) << text;
}

}  // namespace
}  // namespace ckptverify
