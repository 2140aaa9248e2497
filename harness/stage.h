// Where phases are played: one trainer at a time, each with directories, log and events of its own
// below the output directory and otherwise the same surroundings. Keeps the record of phases and
// the time that trainers and copies took.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ckptverify/plan.h"
#include "harness/experiment.h"
#include "harness/snapshot.h"
#include "harness/supervisor.h"

namespace ckptverify {

/// One trainer to be started.
struct PhaseRequest {
  std::string name;       // for people: "evaluation at 5"
  std::string directory;  // "evaluation-interrupted"
  CommandTemplate command;
  std::map<std::string, std::string> values = {};  // of its placeholders, {run_dir} apart
  std::vector<std::uint64_t> holds = {};
};

/// What the end of a run left alive, or what it took to end it; empty where all went as it should.
std::string left_over_text(const RunRecord& run);

class Stage {
 public:
  Stage(const Plan& plan, const ExperimentOptions& options, int interrupt);

  /// Makes the output directory.
  Result<void> set_up();

  Result<Supervisor> begin(const PhaseRequest& phase);
  /// Ends it, if it has not ended, and records the phase.
  RunRecord end(const PhaseRequest& phase, Supervisor supervisor);

  Result<Snapshot> copy(const std::filesystem::path& checkpoint,
                        const std::filesystem::path& target);

  std::filesystem::path run_directory(const std::string& phase) const;
  /// Where its process is started.
  std::filesystem::path working_directory(const PhaseRequest& phase) const;
  /// Where a run with that directory has its checkpoint of that step.
  Result<std::filesystem::path> checkpoint_path(const std::filesystem::path& run_directory,
                                                std::uint64_t step) const;
  const std::filesystem::path& output() const { return output_; }

  /// Of the first phase that did not end as it should: nothing after it is to be trusted.
  const std::string& left_over() const { return left_over_; }
  std::vector<PhaseRecord> take_phases() { return std::move(phases_); }
  Timings timings() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> environment() const;

  const Plan& plan_;
  const ExperimentOptions& options_;
  int interrupt_;
  std::filesystem::path output_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point phase_began_;
  double copied_before_phase_s_ = 0;
  double copy_s_ = 0;
  double trainer_s_ = 0;
  std::uint64_t checkpoint_bytes_ = 0;  // of the largest that was copied
  bool any_copied_ = false;
  bool all_reflinks_ = true;
  std::vector<PhaseRecord> phases_;
  std::string left_over_;
};

}  // namespace ckptverify
