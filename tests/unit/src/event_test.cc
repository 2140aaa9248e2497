// One line of an events file, by docs/events.md: what is taken, and what is refused.
#include "ckptverify/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ckptverify {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kHex = "00112233445566778899aabbccddeeff";

/// A line with the fields that every event has; `rest` begins at the type's own fields.
std::string line_of(std::string_view type, std::string_view rest) {
  std::string line =
      R"({"schema":"ckptverify.event/1","seq":3,"pid":71,"rank":1,"world":2,"t_mono_ns":5,)"
      R"("role":"trainer","type":")";
  line += type;
  line += '"';
  if (!rest.empty()) (line += ',') += rest;
  return line + '}';
}

/// `text` with each H standing for a digest.
std::string with_digests(std::string text) {
  for (std::size_t at = 0; (at = text.find("\"H\"", at)) != std::string::npos;)
    text.replace(at + 1, 1, kHex);
  return text;
}

template <class T>
T parsed(std::string_view type, std::string_view rest) {
  auto event = parse_event(line_of(type, with_digests(std::string(rest))), "");
  EXPECT_TRUE(event) << (event ? "" : event.error().text());
  if (!event || !std::holds_alternative<T>(event->what)) {
    ADD_FAILURE() << type << " is another event";
    return T();
  }
  return std::get<T>(event->what);
}

std::string refusal(std::string_view line) {
  const auto event = parse_event(line, "");
  return event ? "accepted" : event.error().message;
}

std::string refusal(std::string_view type, std::string_view rest) {
  return refusal(line_of(type, with_digests(std::string(rest))));
}

TEST(ParseEvent, ReadsTheEnvelope) {
  const auto event = parse_event(line_of("end", R"("reason":"finished")"), "");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->seq, 3U);
  EXPECT_EQ(event->pid, 71);
  EXPECT_EQ(event->rank, 1U);
  EXPECT_EQ(event->world, 2U);
  EXPECT_EQ(event->t_mono_ns, 5U);
  EXPECT_EQ(event->role, "trainer");
  EXPECT_EQ(std::get<EndEvent>(event->what).reason, "finished");
}

TEST(ParseEvent, NeedsEveryFieldOfTheEnvelope) {
  const std::string line = line_of("end", R"("reason":"finished")");
  for (const std::string field :
       {R"("schema":"ckptverify.event/1",)", R"("seq":3,)", R"("pid":71,)", R"("rank":1,)",
        R"("world":2,)", R"("t_mono_ns":5,)", R"("role":"trainer",)", R"("type":"end",)"}) {
    std::string without = line;
    without.erase(without.find(field), field.size());
    const std::string name = field.substr(1, field.find('"', 1) - 1);
    EXPECT_EQ(refusal(without), "field " + name + ": found nothing, expected a value");
  }
}

TEST(ParseEvent, RefusesOtherSchemasRolesAndTypes) {
  std::string line = line_of("end", R"("reason":"x")");
  EXPECT_EQ(refusal(line), "accepted");
  line.replace(line.find("event/1"), 7, "event/2");
  EXPECT_THAT(refusal(line), HasSubstr("field schema: found \"ckptverify.event/2\""));
  line = line_of("end", R"("reason":"x")");
  line.replace(line.find("trainer"), 7, "teacher");
  EXPECT_THAT(refusal(line), HasSubstr("field role: found \"teacher\""));
  EXPECT_THAT(refusal("restarted", R"("step":1)"), HasSubstr("field type: found \"restarted\""));
}

TEST(ParseEvent, RefusesLinesThatAreNoObject) {
  for (const char* line : {"", "null", "[]", "3", "{\"schema\":", "{}x"})
    EXPECT_NE(refusal(line), "accepted") << line;
}

TEST(ParseEvent, RefusesEveryPrefixOfALine) {
  const std::string line = line_of("save_end", R"("path":"/run/step-5","step":5)");
  ASSERT_EQ(refusal(line), "accepted");
  for (std::size_t size = 0; size < line.size(); ++size)
    EXPECT_NE(refusal(std::string_view(line).substr(0, size)), "accepted") << size;
}

TEST(ParseEvent, LeavesUnknownFieldsAlone) {
  EXPECT_EQ(parsed<EndEvent>("end", R"("reason":"sigterm","mood":{"a":[1]})").reason, "sigterm");
}

TEST(ParseEvent, CountsAreIntegersThatFit) {
  EXPECT_THAT(refusal("restored", R"("path":"p","step":5.0)"), HasSubstr("step: found a float"));
  EXPECT_THAT(refusal("restored", R"("path":"p","step":-1)"), HasSubstr("step: found an integer"));
  EXPECT_THAT(refusal("restored", R"("path":"p","step":"5")"), HasSubstr("step: found a string"));
  std::string line = line_of("end", R"("reason":"x")");
  line.replace(line.find("\"rank\":1"), 8, "\"rank\":4294967296");
  EXPECT_THAT(refusal(line), HasSubstr("rank: found 4294967296"));
}

TEST(ParseEvent, Start) {
  const auto event = parsed<StartEvent>(
      "start",
      R"("command":["a","b"],"versions":{"libtorch":"2"},"hooks":["step"],"unhooked":["rng"])");
  EXPECT_THAT(event.command, ElementsAre("a", "b"));
  EXPECT_EQ(event.versions.at("libtorch"), "2");
  EXPECT_THAT(event.hooks, ElementsAre("step"));
  EXPECT_THAT(event.unhooked, ElementsAre("rng"));
}

TEST(ParseEvent, RestoredAndSaves) {
  EXPECT_EQ(parsed<RestoredEvent>("restored", R"("path":"p","step":5)").step, 5U);
  EXPECT_EQ(parsed<SaveEvent>("save_begin", R"("path":"p","step":5)").point, SavePoint::kBegin);
  const auto end = parsed<SaveEvent>("save_end", R"("path":"p","step":6)");
  EXPECT_EQ(end.point, SavePoint::kEnd);
  EXPECT_EQ(end.path, "p");
  EXPECT_EQ(end.step, 6U);
}

TEST(ParseEvent, StepWithEverything) {
  const auto event = parsed<StepEvent>(
      "step", R"("step":6,"loss":2.5,"lr":[0.001,1],"scale":1024.0,"grad_norm":"inf",)"
              R"("batch":"H","rng":{"torch":"H"},"data_wait_s":0.25)");
  EXPECT_EQ(event.step, 6U);
  EXPECT_EQ(event.loss, 2.5);
  EXPECT_THAT(event.lr, ElementsAre(0.001, 1.0));
  EXPECT_EQ(event.scale, 1024.0);
  EXPECT_TRUE(std::isinf(event.grad_norm.value()));
  EXPECT_EQ(event.batch->hex(), kHex);
  EXPECT_EQ(event.rng.at("torch").hex(), kHex);
  EXPECT_EQ(event.data_wait_s, 0.25);
}

TEST(ParseEvent, StepAloneObservesNothingElse) {
  const auto event = parsed<StepEvent>("step", R"("step":1)");
  EXPECT_EQ(event.loss, std::nullopt);
  EXPECT_TRUE(event.lr.empty());
  EXPECT_EQ(event.batch, std::nullopt);
  EXPECT_TRUE(event.rng.empty());
}

TEST(ParseEvent, StepRefusesWrongTypesAndDigests) {
  EXPECT_THAT(refusal("step", R"("loss":1.0)"), HasSubstr("field step: found nothing"));
  EXPECT_THAT(refusal("step", R"("step":1,"loss":"high")"), HasSubstr("loss: found a string"));
  EXPECT_THAT(refusal("step", R"("step":1,"loss":null)"), HasSubstr("loss: found null"));
  EXPECT_THAT(refusal("step", R"("step":1,"lr":0.1)"), HasSubstr("lr: found a float"));
  EXPECT_THAT(refusal("step", R"("step":1,"batch":"12")"), HasSubstr("batch: found \"12\""));
  EXPECT_THAT(refusal("step", R"("step":1,"rng":{"cuda":"FF112233445566778899aabbccddeeff"})"),
              HasSubstr("field rng.cuda: found"));
}

TEST(ParseEvent, StateTellsTensorsFromValues) {
  const auto event = parsed<StateEvent>(
      "state", R"("at":"save","captured_at":"save_entry","step":5,"components":{)"
               R"("model":{"digest":"H","entries":[)"
               R"({"path":"w","digest":"H","dtype":"float32","shape":[96,64]}]},)"
               R"("rng.1":{"digest":"H","entries":[{"path":"cxx","digest":"H"}]}})");
  EXPECT_EQ(event.at, StateMoment::kSave);
  EXPECT_EQ(event.captured_at, "save_entry");
  EXPECT_EQ(event.step, 5U);
  const StateEntry& tensor = event.components.at("model").entries.at(0);
  EXPECT_EQ(tensor.path, "w");
  EXPECT_EQ(tensor.dtype, "float32");
  EXPECT_THAT(tensor.shape, ElementsAre(96, 64));
  EXPECT_EQ(event.components.at("rng.1").entries.at(0).dtype, "");
}

TEST(ParseEvent, StateRefusesHalfATensorAndUnknownMoments) {
  const std::string_view head = R"("at":"init","captured_at":"construction","step":0,)";
  const auto entries = [head](std::string_view entry) {
    return std::string(head) + R"("components":{"model":{"digest":"H","entries":[)" +
           std::string(entry) + "]}}";
  };
  EXPECT_EQ(refusal("state", entries(R"({"path":"w","digest":"H"})")), "accepted");
  EXPECT_THAT(refusal("state", entries(R"({"path":"w","digest":"H","dtype":"float32"})")),
              HasSubstr("a dtype alone"));
  EXPECT_THAT(refusal("state", entries(R"({"path":"w","digest":"H","shape":[1]})")),
              HasSubstr("a shape alone"));
  EXPECT_THAT(refusal("state", entries(R"({"path":"w"})")), HasSubstr("digest: found nothing"));
  EXPECT_THAT(refusal("state", entries("3")), HasSubstr("path: found nothing"));
  EXPECT_THAT(refusal("state", R"("at":"end","captured_at":"x","step":0,"components":{})"),
              HasSubstr("at: found \"end\""));
  EXPECT_THAT(refusal("state", std::string(head) + R"("components":[])"),
              HasSubstr("components: found an array"));
}

class SideFiles : public testing::Test {
 protected:
  SideFiles() {
    std::string name = (fs::temp_directory_path() / "event_test.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    events_ = root_ / "events";
    fs::create_directory(events_);
  }
  ~SideFiles() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  SideFiles(const SideFiles&) = delete;
  SideFiles& operator=(const SideFiles&) = delete;

  static void write(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << with_digests(std::string(text));
  }

  Result<Event> parse_side(std::string_view side) const {
    return parse_event(
        line_of("state", R"("at":"init","captured_at":"construction","step":0,"side":")" +
                             std::string(side) + '"'),
        events_.string());
  }

  fs::path root_;
  fs::path events_;
};

TEST_F(SideFiles, HoldTheComponentsOfALongLine) {
  write(events_ / "side.json", R"({"model":{"digest":"H","entries":[{"path":"w","digest":"H"}]}})");
  const auto event = parse_side("side.json");
  ASSERT_TRUE(event);
  EXPECT_EQ(std::get<StateEvent>(event->what).components.at("model").entries.at(0).path, "w");
}

TEST_F(SideFiles, AreNeverTakenFromElsewhere) {
  write(root_ / "side.json", "{}");
  for (const char* name : {"../side.json", "/etc/passwd", "..", ".", "", "a/b", "a\\u0000b"})
    EXPECT_THAT(parse_side(name).error().message, HasSubstr("expected a plain file name")) << name;
}

TEST_F(SideFiles, ThatAreMissingOrTornAreErrorsThatNameThem) {
  EXPECT_EQ(parse_side("none.json").error().kind, ErrorKind::kUnreadable);
  write(events_ / "torn.json", R"({"model":{"digest":)");
  const auto torn = parse_side("torn.json");
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().subject, (events_ / "torn.json").string());
  fs::create_directory(events_ / "directory");
  EXPECT_THAT(parse_side("directory").error().message, HasSubstr("found a directory"));
}

TEST_F(SideFiles, ThatAreTooLargeAreRefusedUnread) {
  write(events_ / "large.json", "{}");
  fs::resize_file(events_ / "large.json", (std::uintmax_t{256} << 20) + 1);  // sparse
  EXPECT_THAT(parse_side("large.json").error().message, HasSubstr("expected at most 268435456"));
}

TEST(ParseEvent, StateHasComponentsOrASideFileAndNotBoth) {
  const std::string_view head = R"("at":"init","captured_at":"construction","step":0)";
  EXPECT_THAT(refusal("state", head), HasSubstr("neither components nor side"));
  EXPECT_THAT(refusal("state", std::string(head) + R"(,"components":{},"side":"a")"),
              HasSubstr("found components and side"));
}

TEST(ParseEvent, EvalAndMemory) {
  const auto eval =
      parsed<EvalEvent>("eval", R"("step":5,"metrics":{"loss":2.5,"worst":"nan"},"outputs":"H")");
  EXPECT_EQ(eval.step, 5U);
  EXPECT_EQ(eval.metrics.at("loss"), 2.5);
  EXPECT_TRUE(std::isnan(eval.metrics.at("worst")));
  EXPECT_EQ(eval.outputs->hex(), kHex);
  EXPECT_EQ(parsed<EvalEvent>("eval", R"("step":5,"metrics":{})").outputs, std::nullopt);
  const auto memory =
      parsed<MemoryEvent>("memory", R"("device":"cpu","allocated":1,"reserved":2,"peak":3)");
  EXPECT_EQ(memory.device, "cpu");
  EXPECT_EQ(memory.allocated_bytes, 1U);
  EXPECT_EQ(memory.reserved_bytes, 2U);
  EXPECT_EQ(memory.peak_bytes, 3U);
}

}  // namespace
}  // namespace ckptverify
