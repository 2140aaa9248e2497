// The experiment: reference, interruption, static checks on a moved copy, restore, comparison.
// Drives processes through their guardian and writes everything that it saw below the output
// directory.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ckptverify/format.h"
#include "ckptverify/plan.h"
#include "ckptverify/report.h"
#include "harness/observations.h"

namespace ckptverify {

struct ExperimentOptions {
  std::filesystem::path output_directory;  // made; must be empty or absent
  std::filesystem::path tool;              // the executable to start as guardian
  Threads threads = {};
  /// Called when a phase begins, as its steps pass and while it is waited for: "reference", 3, 10.
  std::function<void(std::string_view phase, std::uint64_t step, std::uint64_t last_step)>
      progress = {};
};

struct ExperimentRecord {
  Observations observations;
  std::vector<PhaseRecord> phases;
  Timings timings;
  int interrupted_by = 0;  // SIGINT, SIGTERM or SIGHUP came and ended it early; 0: none did
};

/// An error only where the output directory cannot be used. What trainers do wrong is in the
/// record, and so is what ends the experiment early (a signal, a full disk), with what was seen
/// until then. While it runs, SIGINT, SIGTERM and SIGHUP are taken from the calling thread:
/// everything is killed, and the record so far is returned. Nothing is removed from the output
/// directory:
///
///     run/<phase>/  work/<phase>/       a trainer's {run_dir} and its working directory
///     events/<phase>/  logs/<phase>.log
///     checkpoints/<run>/                snapshots; checkpoints/moved/ is what is restored,
///                                       checkpoints/evaluated/ a copy of it for the evaluation
///     away/<run>/                       the reference and the interrupted run, out of the way
Result<ExperimentRecord> run_experiment(const Plan& plan, const FormatTable& formats,
                                        const ExperimentOptions& options);

}  // namespace ckptverify
