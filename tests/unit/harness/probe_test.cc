// The C++ probe against the strict event parser: what is written parses, holds hold, failures are
// silent.
#include "ckptverify/probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "ckptverify/event.h"

namespace ckptverify {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "probe-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ::setenv("CKPTVERIFY_EVENTS", events().c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"CKPTVERIFY_EVENTS", "CKPTVERIFY_HOLD", "CKPTVERIFY_GATE"})
      ::unsetenv(name);
    fs::remove_all(directory_);
  }

  fs::path events() const { return directory_ / "events.jsonl"; }
  fs::path gate() const { return directory_ / "gate"; }

  std::vector<std::string> lines() const {
    std::ifstream file(events());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  Event event(std::size_t index) const {
    auto parsed = parse_event(lines().at(index), directory_.string());
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().text());
    return parsed ? *parsed : Event{};
  }

  fs::path directory_;
};

TEST_F(ProbeTest, WritesNothingWithoutTheVariable) {
  ::unsetenv("CKPTVERIFY_EVENTS");
  Probe probe = Probe::from_environment();
  probe.end("finished");
  EXPECT_FALSE(probe.enabled());
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(ProbeTest, CountsEventsAndNamesItsProcess) {
  Probe probe = Probe::from_environment({.rank = 2, .world = 4, .role = "worker"});
  probe.end("finished");
  probe.end("again");
  const Event second = event(1);
  EXPECT_EQ(second.seq, 1u);
  EXPECT_EQ(second.pid, ::getpid());
  EXPECT_EQ(second.rank, 2u);
  EXPECT_EQ(second.world, 4u);
  EXPECT_EQ(second.role, "worker");
  EXPECT_EQ(std::get<EndEvent>(second.what).reason, "again");
  EXPECT_GE(second.t_mono_ns, event(0).t_mono_ns);
}

TEST_F(ProbeTest, ReplacesRankAndPidInTheFileName) {
  ::setenv("CKPTVERIFY_EVENTS", (directory_ / "{rank}-{pid}.jsonl").c_str(), 1);
  Probe::from_environment({.rank = 3}).end("finished");
  EXPECT_TRUE(fs::exists(directory_ / ("3-" + std::to_string(::getpid()) + ".jsonl")));
}

TEST_F(ProbeTest, EscapesTextAndReplacesWhatIsNoUtf8) {
  Probe::from_environment().start({"a\"b\\c\n\x01", "caf\xc3\xa9", "bad\xff\xc3"}, {{"x", "1"}},
                                  {"step"}, {"rng"});
  const auto start = std::get<StartEvent>(event(0).what);
  EXPECT_THAT(start.command,
              ElementsAre("a\"b\\c\n\x01", "caf\xc3\xa9", "bad\xef\xbf\xbd\xef\xbf\xbd"));
  EXPECT_EQ(start.versions.at("x"), "1");
  EXPECT_THAT(start.hooks, ElementsAre("step"));
  EXPECT_THAT(start.unhooked, ElementsAre("rng"));
}

TEST_F(ProbeTest, WritesStepsThatRoundTrip) {
  ProbeStep step;
  step.step = 7;
  step.loss = 0.1 + 0.2;
  step.lr = {1e-300, 1024};
  step.scale = std::numeric_limits<double>::infinity();
  step.grad_norm = std::nan("");
  step.batch = ckptverify_bytes_digest("abc", 3);
  step.rng = {{"cxx", ckptverify_bytes_digest("x", 1)}};
  Probe::from_environment().step(step);
  const auto read = std::get<StepEvent>(event(0).what);
  EXPECT_EQ(read.step, 7u);
  EXPECT_EQ(read.loss, 0.1 + 0.2);
  EXPECT_THAT(read.lr, ElementsAre(1e-300, 1024.0));
  EXPECT_EQ(read.scale, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(read.grad_norm.value()));
  EXPECT_EQ(read.batch, hash_bytes(as_bytes("abc")));
  EXPECT_EQ(read.rng.at("cxx"), hash_bytes(as_bytes("x")));
  EXPECT_FALSE(read.data_wait_s.has_value());
  EXPECT_THAT(lines()[0], HasSubstr("1024.0"));
}

TEST_F(ProbeTest, LeavesOutWhatWasNotSeen) {
  ProbeStep step;
  step.step = 1;
  Probe::from_environment().step(step);
  const auto read = std::get<StepEvent>(event(0).what);
  EXPECT_FALSE(read.loss || read.scale || read.grad_norm || read.batch);
  EXPECT_TRUE(read.lr.empty() && read.rng.empty());
}

TEST_F(ProbeTest, DigestsAStateAsTheFingerprintDoes) {
  const float weights[] = {1, 2, 3, 4};
  StateTree tree;
  tree.component("model").tensor("w", "float32", {2, 2}, weights, sizeof weights);
  tree.component("step").integer("step", 5);
  tree.component("scaler").number("scale", 5);
  Probe::from_environment().state("save", "save_entry", 5, tree);
  const auto state = std::get<StateEvent>(event(0).what);
  EXPECT_EQ(state.at, StateMoment::kSave);
  EXPECT_EQ(state.captured_at, "save_entry");
  EXPECT_EQ(state.step, 5u);
  const std::uint64_t shape[] = {2, 2};
  const Digest weight = tensor_digest("float32", shape, std::as_bytes(std::span(weights)));
  const ComponentState& model = state.components.at("model");
  ASSERT_THAT(model.entries, SizeIs(1));
  EXPECT_EQ(model.entries[0].path, "w");
  EXPECT_EQ(model.entries[0].dtype, "float32");
  EXPECT_THAT(model.entries[0].shape, ElementsAre(2u, 2u));
  EXPECT_EQ(model.entries[0].digest, weight);
  EXPECT_EQ(model.digest, component_digest({{"w", weight}}));
  EXPECT_EQ(state.components.at("step").entries[0].digest, value_digest(std::int64_t{5}));
  EXPECT_EQ(state.components.at("scaler").entries[0].digest, value_digest(5.0));
}

TEST_F(ProbeTest, PutsALargeStateIntoASideFile) {
  StateTree tree;
  for (int index = 0; index < 2000; ++index)
    tree.component("other").integer("value." + std::to_string(index), index);
  Probe::from_environment().state("restored", "before_first_batch", 1, tree);
  ASSERT_THAT(lines(), SizeIs(1));
  EXPECT_LT(lines()[0].size(), 1024u);
  EXPECT_THAT(std::get<StateEvent>(event(0).what).components.at("other").entries, SizeIs(2000));
}

TEST_F(ProbeTest, WritesTheOtherEvents) {
  Probe probe = Probe::from_environment();
  probe.restored("/run/step-5", 5);
  probe.save_begin("/run/step-10", 10);
  probe.save_end("/run/step-10", 10);
  probe.eval(10, {{"loss", 2.5}}, ckptverify_bytes_digest("l", 1));
  ProbeMemory memory;
  memory.peak_bytes = 77;
  probe.memory(memory);
  EXPECT_EQ(std::get<RestoredEvent>(event(0).what).path, "/run/step-5");
  EXPECT_EQ(std::get<SaveEvent>(event(1).what).point, SavePoint::kBegin);
  EXPECT_EQ(std::get<SaveEvent>(event(2).what).point, SavePoint::kEnd);
  EXPECT_EQ(std::get<EvalEvent>(event(3).what).metrics.at("loss"), 2.5);
  EXPECT_EQ(std::get<EvalEvent>(event(3).what).outputs, hash_bytes(as_bytes("l")));
  EXPECT_EQ(std::get<MemoryEvent>(event(4).what).peak_bytes, 77u);
}

/// Leaves only through the gate: a child saves at `step` and says "after" once it was let go.
void save_in_child(std::uint64_t step) {
  Probe probe = Probe::from_environment();
  probe.save_end("/run", step);
  probe.end("after");
  ::_exit(0);
}

TEST_F(ProbeTest, HoldsAtTheNamedSaveUntilTheGateIsClosed) {
  ASSERT_EQ(::mkfifo(gate().c_str(), 0600), 0);
  ::setenv("CKPTVERIFY_GATE", gate().c_str(), 1);
  ::setenv("CKPTVERIFY_HOLD", "save_end@5,save_end@10", 1);
  const pid_t child = ::fork();
  if (child == 0) save_in_child(10);
  const int writer = ::open(gate().c_str(), O_WRONLY);  // returns when the child has opened it too
  ASSERT_GE(writer, 0);
  EXPECT_THAT(lines(), SizeIs(1));  // it cannot go on while this end is open
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
  ::close(writer);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ASSERT_THAT(lines(), SizeIs(2));
  EXPECT_EQ(std::get<EndEvent>(event(1).what).reason, "after");
}

TEST_F(ProbeTest, DoesNotHoldAtAStepThatOnlyBeginsLikeTheNamedOne) {
  ASSERT_EQ(::mkfifo(gate().c_str(), 0600), 0);
  ::setenv("CKPTVERIFY_GATE", gate().c_str(), 1);
  ::setenv("CKPTVERIFY_HOLD", "save_end@5,save_end@10", 1);
  Probe probe = Probe::from_environment();
  probe.save_end("/run", 1);
  probe.save_begin("/run", 10);
  probe.save_end("/run", 50);
  EXPECT_THAT(lines(), SizeIs(3));
}

TEST_F(ProbeTest, GoesSilentWhereItCannotOpen) {
  ::setenv("CKPTVERIFY_EVENTS", (directory_ / "absent" / "events").c_str(), 1);
  Probe probe = Probe::from_environment();
  EXPECT_FALSE(probe.enabled());
  probe.end("finished");
}

TEST_F(ProbeTest, GoesSilentWhereItCannotWrite) {
  ::setenv("CKPTVERIFY_EVENTS", "/dev/full", 1);
  Probe probe = Probe::from_environment();
  ASSERT_TRUE(probe.enabled());
  probe.end("finished");
  EXPECT_FALSE(probe.enabled());
}

}  // namespace
}  // namespace ckptverify
