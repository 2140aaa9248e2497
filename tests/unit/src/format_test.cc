// Which format reads a source, and what is said when none does.
#include "ckptverify/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

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

TEST(FormatTable, NamesTheCheckpointsBelowADirectoryThatIsNone) {
  const auto bytes = [](std::string_view text) {
    const Bytes view = as_bytes(text);
    return std::vector<std::byte>(view.begin(), view.end());
  };
  std::map<std::string, std::vector<std::byte>> files = {{"run/save/a", bytes("xz")},
                                                         {"run/notes", bytes("n")}};
  const auto text = [&] { return error_of(Source::memory_directory("d", files)).text(); };
  EXPECT_EQ(text(),
            "d: no known checkpoint format; found a directory of 2 files; the checkpoint in "
            "it is run/save/a (first): name that");
  files["run/b"] = files["run/c"] = bytes("xz");  // nearer ones
  EXPECT_EQ(text(),
            "d: no known checkpoint format; found a directory of 4 files; checkpoints in it "
            "are run/b (first), run/c (first): name one of them");
  for (int i = 0; i < 300; ++i) files["run/d" + std::to_string(1000 + i)] = bytes("xz");
  EXPECT_THAT(text(), HasSubstr("run/d1005 (first) and 247 more: name one of them"));
  EXPECT_EQ(error_of(Source::memory_directory("d", {{"a/b/c/d/e/f", bytes("xz")}})).text(),
            "d: no known checkpoint format; found a directory of 1 file");
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
