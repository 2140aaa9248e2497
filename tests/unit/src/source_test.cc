// What may be opened and what is refused.
#include "ckptverify/source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

namespace ckptverify {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::byte> bytes_of(std::string_view text) {
  const Bytes bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

class SourceFiles : public testing::Test {
 protected:
  SourceFiles() {
    std::string name = (fs::temp_directory_path() / "source_test.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    inside_ = root_ / "checkpoint";
    fs::create_directory(inside_);
  }
  ~SourceFiles() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  SourceFiles(const SourceFiles&) = delete;
  SourceFiles& operator=(const SourceFiles&) = delete;

  static void write(const fs::path& path, std::string_view text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  fs::path root_;
  fs::path inside_;
};

TEST_F(SourceFiles, AFileIsItsBytes) {
  write(root_ / "a.pt", "hello");
  const auto source = Source::open(root_ / "a.pt");
  ASSERT_TRUE(source);
  EXPECT_FALSE(source->is_directory());
  EXPECT_EQ(as_text(source->bytes()), "hello");
  EXPECT_EQ(source->name(), (root_ / "a.pt").string());
  EXPECT_THAT(source->members(), IsEmpty());
}

TEST_F(SourceFiles, AnEmptyFileHasNoBytes) {
  write(root_ / "empty", "");
  const auto source = Source::open(root_ / "empty");
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->bytes().empty());
}

TEST_F(SourceFiles, BytesOutliveTheFilesNameAndTheFirstCopy) {
  write(root_ / "a", "hello");
  Source copy = Source::memory("", {});
  {
    auto source = Source::open(root_ / "a");
    ASSERT_TRUE(source);
    copy = *source;
  }
  fs::remove(root_ / "a");
  EXPECT_EQ(as_text(copy.bytes()), "hello");
}

TEST_F(SourceFiles, AMissingFileIsUnreadableAndNamed) {
  const auto source = Source::open(root_ / "none");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind, ErrorKind::kUnreadable);
  EXPECT_EQ(source.error().subject, (root_ / "none").string());
}

TEST_F(SourceFiles, RefusesAFifoWithoutBlocking) {
  ASSERT_EQ(::mkfifo((root_ / "fifo").c_str(), 0600), 0);
  const auto source = Source::open(root_ / "fifo");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind, ErrorKind::kUnreadable);
  EXPECT_THAT(source.error().message, HasSubstr("found a FIFO"));
}

TEST_F(SourceFiles, RefusesADevice) {
  const auto source = Source::open("/dev/null");
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().message, HasSubstr("found a device"));
}

TEST_F(SourceFiles, TheNamedPathItselfMayBeALink) {
  write(root_ / "real", "hello");
  fs::create_symlink("real", root_ / "link");
  fs::create_directory_symlink("checkpoint", root_ / "latest");
  write(inside_ / "a", "a");
  EXPECT_EQ(as_text(Source::open(root_ / "link")->bytes()), "hello");
  const auto latest = Source::open(root_ / "latest");
  ASSERT_TRUE(latest);
  EXPECT_EQ(as_text(latest->member("a")->bytes()), "a");
}

TEST_F(SourceFiles, ADirectoryListsAllFilesBelowSorted) {
  for (const char* name : {"b", "a/z", "a/y/x", "a.txt", "c/.hidden"}) write(inside_ / name, name);
  fs::create_directory(inside_ / "empty");
  const auto source = Source::open(inside_);
  ASSERT_TRUE(source);
  EXPECT_TRUE(source->is_directory());
  EXPECT_THAT(source->members(), ElementsAre("a.txt", "a/y/x", "a/z", "b", "c/.hidden"));
  EXPECT_THAT(source->refused(), IsEmpty());
  EXPECT_TRUE(source->has_member("a/z"));
  EXPECT_FALSE(source->has_member("a"));
  const auto member = source->member("a/y/x");
  ASSERT_TRUE(member);
  EXPECT_EQ(member->name(), "a/y/x");
  EXPECT_EQ(member->path(), inside_ / "a/y/x");
  EXPECT_EQ(as_text(member->bytes()), "a/y/x");
}

TEST_F(SourceFiles, LinksThatStayInsideAreMembers) {
  write(inside_ / "blobs/1", "one");
  fs::create_symlink("blobs/1", inside_ / "model");
  const auto source = Source::open(inside_);
  ASSERT_TRUE(source);
  EXPECT_THAT(source->members(), ElementsAre("blobs/1", "model"));
  EXPECT_EQ(as_text(source->member("model")->bytes()), "one");
}

TEST_F(SourceFiles, WhatIsNoFileInsideIsRefusedAndNamed) {
  write(root_ / "secret", "s");
  write(root_ / "checkpoint-other/secret", "s");
  write(inside_ / "good", "g");
  write(inside_ / "directory/good", "g");
  fs::create_symlink("../secret", inside_ / "escaping");
  fs::create_symlink("../checkpoint-other/secret", inside_ / "neighbour");
  fs::create_symlink("nowhere", inside_ / "dangling");
  fs::create_symlink("loop", inside_ / "loop");
  fs::create_symlink("/dev/null", inside_ / "device");
  fs::create_directory_symlink("directory", inside_ / "linked");
  ASSERT_EQ(::mkfifo((inside_ / "fifo").c_str(), 0600), 0);
  const auto source = Source::open(inside_);
  ASSERT_TRUE(source);
  EXPECT_THAT(source->members(), ElementsAre("directory/good", "good"));
  EXPECT_THAT(source->refused(),
              ElementsAre("dangling", "device", "escaping", "fifo", "linked", "loop", "neighbour"));
  for (const std::string& name : source->refused()) {
    const auto member = source->member(name);
    ASSERT_FALSE(member) << name;
    EXPECT_EQ(member.error().kind, ErrorKind::kUnreadable) << name;
  }
  EXPECT_FALSE(source->member("linked/good"));
}

TEST_F(SourceFiles, AMemberThatBecameAnEscapingLinkIsRefused) {
  write(root_ / "secret", "s");
  write(inside_ / "a", "a");
  const auto source = Source::open(inside_);
  ASSERT_TRUE(source);
  fs::remove(inside_ / "a");
  fs::create_symlink("../secret", inside_ / "a");
  EXPECT_FALSE(source->member("a"));
}

TEST_F(SourceFiles, NamesThatLeaveTheDirectoryAreRefused) {
  write(root_ / "secret", "s");
  write(inside_ / "a/b", "b");
  const auto source = Source::open(inside_);
  ASSERT_TRUE(source);
  for (const std::string_view name :
       {std::string_view(""), std::string_view("../secret"), std::string_view("a/../../secret"),
        std::string_view("a/../a/b"), std::string_view("/etc/passwd"), std::string_view(".."),
        std::string_view("a/..")}) {
    const auto member = source->member(name);
    ASSERT_FALSE(member) << name;
    EXPECT_EQ(member.error().kind, ErrorKind::kMalformed) << name;
    EXPECT_FALSE(source->subdirectory(name)) << name;
  }
  EXPECT_THAT(source->member("..").error().message, HasSubstr("leaves the directory"));
  EXPECT_THAT(source->member(std::string_view("a/b\0c", 5)).error().message, HasSubstr("NUL"));
  EXPECT_FALSE(source->member("a"));
  EXPECT_FALSE(source->member("./a/b"));
  EXPECT_TRUE(source->member("a/b"));
}

TEST_F(SourceFiles, NamesMayContainDots) {
  write(inside_ / "a..b", "x");
  EXPECT_TRUE(Source::open(inside_)->member("a..b"));
}

TEST_F(SourceFiles, ASubdirectoryHasItsOwnNames) {
  write(inside_ / "a/b/c", "c");
  write(inside_ / "a.d", "d");
  write(inside_ / "ab/e", "e");
  ASSERT_EQ(::mkfifo((inside_ / "a/fifo").c_str(), 0600), 0);
  const auto source = Source::open(inside_);
  ASSERT_TRUE(source);
  const auto below = source->subdirectory("a");
  ASSERT_TRUE(below);
  EXPECT_EQ(below->name(), "a");
  EXPECT_EQ(below->path(), inside_ / "a");
  EXPECT_THAT(below->members(), ElementsAre("b/c"));
  EXPECT_THAT(below->refused(), ElementsAre("fifo"));
  EXPECT_EQ(as_text(below->member("b/c")->bytes()), "c");
  EXPECT_FALSE(source->subdirectory("none"));
}

TEST_F(SourceFiles, RefusesDirectoriesThatNestWithoutEnd) {
  fs::path path = inside_;
  for (int i = 0; i < 40; ++i) path /= "d";
  write(path / "a", "a");
  const auto source = Source::open(inside_);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().kind, ErrorKind::kUnsupported);
}

TEST(SourceMemory, IsAFileWithoutAPath) {
  const Source source = Source::memory("test", bytes_of("hello"));
  EXPECT_EQ(source.name(), "test");
  EXPECT_TRUE(source.path().empty());
  EXPECT_EQ(as_text(source.bytes()), "hello");
}

TEST(SourceMemory, ADirectoryBehavesLikeOneOnDisk) {
  const Source source = Source::memory_directory(
      "test", {{"b", bytes_of("b")}, {"a/c", bytes_of("c")}, {"a/d/e", bytes_of("e")}});
  EXPECT_TRUE(source.is_directory());
  EXPECT_THAT(source.members(), ElementsAre("a/c", "a/d/e", "b"));
  EXPECT_EQ(as_text(source.member("a/c")->bytes()), "c");
  EXPECT_FALSE(source.member("../b"));
  const auto below = source.subdirectory("a/");
  ASSERT_TRUE(below);
  EXPECT_THAT(below->members(), ElementsAre("c", "d/e"));
  EXPECT_EQ(as_text(below->subdirectory("d")->member("e")->bytes()), "e");
}

using SourceFilesDeathTest = SourceFiles;

TEST_F(SourceFilesDeathTest, AFileThatShrinksWhileItIsReadIsNamedAndEndsWith66) {
  const fs::path path = root_ / "shrinks.pt";
  write(path, std::string(3 * 65536, 'x'));
  const auto other = Source::open(root_ / "shrinks.pt");
  const auto source = Source::open(path);
  ASSERT_TRUE(source && other);
  EXPECT_EXIT(
      {
        fs::resize_file(path, 10);
        const Bytes bytes = source->bytes();
        volatile std::byte last = bytes[bytes.size() - 1];
        ::_exit(last == std::byte{'x'} ? 0 : 1);
      },
      testing::ExitedWithCode(66),
      "ckptverify: .*shrinks.pt: byte 196607: the file shrank, or its disk failed, while it was "
      "read");
}

TEST_F(SourceFilesDeathTest, ABusErrorOutsideOfEveryMappingIsNotHidden) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer takes the signal for itself";
#endif
  write(root_ / "a.pt", "hello");
  const auto source = Source::open(root_ / "a.pt");
  ASSERT_TRUE(source);
  EXPECT_EXIT(
      {
        ::raise(SIGBUS);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace ckptverify
