// Kills at random moments of a trainer that saves all the time and hides its workers: whatever the
// moment, nothing of the tree is left, and the next start finds the last acknowledged save or the
// one in flight. CKPTVERIFY_KILLS and CKPTVERIFY_SEED repeat a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

#include "tests/recovery/processes.h"

namespace ckptverify {
namespace {

using testing::Directory;
using ::testing::IsEmpty;
using testing::marked_processes;
using testing::new_mark;
using testing::odd_trainer;

constexpr std::uint64_t kKillsDefault = 100;
constexpr double kDelayMax_s = 0.12;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// What the trainer told across all its lives: the saves that the next life may begin at.
struct Oracle {
  std::optional<std::uint64_t> acknowledged;
  std::optional<std::uint64_t> in_flight;
  std::uint64_t restored_acknowledged = 0;
  std::uint64_t restored_in_flight = 0;

  void restored(std::uint64_t step) {
    if (acknowledged == step) {
      ++restored_acknowledged;
    } else {
      EXPECT_EQ(in_flight, step) << "acknowledged: " << acknowledged.value_or(0);
      ++restored_in_flight;
    }
    acknowledged = step;
    in_flight.reset();
  }

  void take(const Trace& trace) {
    for (const Event& event : trace.events) {
      if (const auto* restore = std::get_if<RestoredEvent>(&event.what)) restored(restore->step);
      const auto* step = std::get_if<StepEvent>(&event.what);
      if (step != nullptr && step->step == 1) {
        EXPECT_FALSE(acknowledged) << "a restart from scratch after a save was acknowledged";
      }
      const auto* save = std::get_if<SaveEvent>(&event.what);
      if (save == nullptr) continue;
      if (save->point == SavePoint::kBegin) {
        in_flight = save->step;
      } else {
        acknowledged = save->step;
        in_flight.reset();
      }
    }
  }
};

bool trained(const Trace& trace) {
  for (const Event& event : trace.events) {
    if (std::holds_alternative<StepEvent>(event.what)) return true;
  }
  return false;
}

TEST(Kills, LeaveNoProcessAndOnlyAllowedStates) {
  const std::uint64_t seed = setting("CKPTVERIFY_SEED", 1);
  const std::uint64_t kills = setting("CKPTVERIFY_KILLS", kKillsDefault);
  std::cout << "CKPTVERIFY_SEED=" << seed << " CKPTVERIFY_KILLS=" << kills << std::endl;
  std::mt19937_64 random(seed);
  const Directory directory;
  const std::string mark = new_mark();
  Oracle oracle;
  std::uint64_t in_save = 0;
  for (std::uint64_t kill = 0; kill < kills && !::testing::Test::HasFailure(); ++kill) {
    const double delay_s = kDelayMax_s * static_cast<double>(random() % 100'000) / 100'000.0;
    SCOPED_TRACE("kill " + std::to_string(kill) + " after " + std::to_string(delay_s) + " s");
    auto trainer =
        Supervisor::start(odd_trainer(directory.path() / ("life-" + std::to_string(kill)),
                                      {"train", "--run-dir", (directory.path() / "run").string(),
                                       "--steps", "1000000", "--save-every", "3", "--step-us",
                                       "1000", "--continue", "yes", "--behave", "workers-setsid"},
                                      mark));
    ASSERT_TRUE(trainer) << trainer.error().text();
    EXPECT_FALSE(trainer->ends_within(delay_s));
    EXPECT_EQ(trainer->kill(), KillOutcome::kConfirmed);
    EXPECT_THAT(marked_processes(mark), IsEmpty());
    const RunRecord run = trainer->finish();
    EXPECT_EQ(run.exit.text(), "signal 9 (KILL), sent by us");
    if (trained(run.trace)) {
      EXPECT_GE(run.processes_killed, 4U);  // and its three workers
    }
    oracle.take(run.trace);
    if (oracle.in_flight) ++in_save;
  }
  std::cout << kills << " kills, " << in_save << " during a save; restored the acknowledged save "
            << oracle.restored_acknowledged << " times, the one in flight "
            << oracle.restored_in_flight << " times" << std::endl;
  if (kills >= kKillsDefault) {
    EXPECT_GT(in_save, 0U) << "no kill hit a save: the test has proven nothing about them";
    EXPECT_GT(oracle.restored_acknowledged, 0U);
  }
}

}  // namespace
}  // namespace ckptverify
