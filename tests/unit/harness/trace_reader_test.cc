// Event files that grow under the reader's eyes.
#include "harness/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <fstream>

namespace ckptverify {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string step_line(int step) {
  return R"({"schema":"ckptverify.event/1","seq":0,"pid":7,"rank":0,"world":1,"t_mono_ns":1,)"
         R"("role":"trainer","type":"step","step":)" +
         std::to_string(step) + "}\n";
}

class Traces : public ::testing::Test {
 protected:
  Traces() {
    std::string pattern = (fs::temp_directory_path() / "ckptverify-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Traces() override { fs::remove_all(directory_); }
  void append(const std::string& text, const std::string& file = "a.jsonl") {
    std::ofstream(directory_ / file, std::ios::app | std::ios::binary) << text;
  }
  TraceReader reader() {
    auto followed = TraceReader::follow(directory_);
    EXPECT_TRUE(followed);
    return *std::move(followed);
  }
  fs::path directory_;
};

TEST_F(Traces, WakeTheirReader) {
  const TraceReader trace = reader();
  pollfd ready = {trace.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  append(step_line(1));
  EXPECT_EQ(::poll(&ready, 1, 10'000), 1);
}

TEST_F(Traces, WaitForTheEndOfALine) {
  TraceReader trace = reader();
  const std::string line = step_line(1);
  append(line.substr(0, 20));
  EXPECT_EQ(trace.collect(), 0U);
  append(line.substr(20));
  EXPECT_EQ(trace.collect(), 1U);
  EXPECT_EQ(trace.collect(), 0U);
  EXPECT_TRUE(trace.finish().garbled.empty());
}

TEST_F(Traces, AreReadFromSeveralFiles) {
  TraceReader trace = reader();
  append(step_line(1), "a.jsonl");
  append(step_line(2), "b.jsonl");
  append("not events", "b.jsonl.7.1.state");
  EXPECT_EQ(trace.collect(), 2U);
  EXPECT_EQ(trace.finish().events.size(), 2U);
}

TEST_F(Traces, NoteGarbageAndGoOn) {
  TraceReader trace = reader();
  append(step_line(1) + "no json\n" + step_line(2) + "{}\n" + step_line(3) + "cut");
  EXPECT_EQ(trace.collect(), 3U);
  const Trace seen = trace.finish();
  ASSERT_EQ(seen.garbled.size(), 3U);
  EXPECT_EQ(seen.garbled[0].line, 2U);
  EXPECT_EQ(seen.garbled[1].line, 4U);
  EXPECT_EQ(seen.garbled[2].line, 6U);
}

TEST_F(Traces, BoundTheGarbageThatIsKept) {
  TraceReader trace = reader();
  for (int i = 0; i < 5000; ++i) append("x\n");
  append(step_line(1));
  EXPECT_EQ(trace.collect(), 1U);
  EXPECT_EQ(trace.finish().garbled.size(), 1001U);
}

TEST_F(Traces, SkipALineThatIsLongerThanAnyEvent) {
  TraceReader trace = reader();
  std::string text(3'000'000, 'x');
  text += '\n';
  text += step_line(1);
  append(text);
  EXPECT_EQ(trace.collect(), 1U);
  const Trace seen = trace.finish();
  ASSERT_EQ(seen.garbled.size(), 1U);
  EXPECT_THAT(seen.garbled[0].reason, HasSubstr("longer than any event"));
}

TEST_F(Traces, NoteAFileThatIsCutOrTakenAway) {
  TraceReader trace = reader();
  append(step_line(1), "cut.jsonl");
  append(step_line(2), "gone.jsonl");
  append(step_line(3), "replaced.jsonl");
  EXPECT_EQ(trace.collect(), 3U);
  fs::resize_file(directory_ / "cut.jsonl", 1);
  fs::remove(directory_ / "gone.jsonl");
  fs::remove(directory_ / "replaced.jsonl");
  fs::create_directory(directory_ / "replaced.jsonl");
  EXPECT_EQ(trace.collect(), 0U);
  const Trace seen = trace.finish();
  ASSERT_EQ(seen.garbled.size(), 3U);
  EXPECT_EQ(seen.garbled[0].file, "cut.jsonl");
  EXPECT_THAT(seen.garbled[0].reason, HasSubstr("cut short; found 1 bytes"));
  EXPECT_EQ(seen.garbled[1].file, "gone.jsonl");
  EXPECT_EQ(seen.garbled[2].file, "replaced.jsonl");
  EXPECT_THAT(seen.garbled[2].reason, HasSubstr("removed or replaced"));
}

TEST_F(Traces, NeverOpenWhatIsNoFile) {
  TraceReader trace = reader();
  fs::create_symlink("/etc/passwd", directory_ / "link.jsonl");
  fs::create_directory(directory_ / "directory.jsonl");
  EXPECT_EQ(trace.collect(), 0U);
  EXPECT_TRUE(trace.finish().garbled.empty());
}

}  // namespace
}  // namespace ckptverify
