// What to do with a trainer: parsed from one TOML file and --set, immutable afterwards.
// docs/plan.md describes every key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/comparison.h"
#include "ckptverify/path_pattern.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// An argument list with placeholders {checkpoint}, {run_dir}, {step} and the plan's variables.
using CommandTemplate = std::vector<std::string>;

struct Deadlines {
  double start_s = 120;    // process start to the first event or step
  double step_s = 300;     // between two signs of progress
  double restore_s = 300;  // start of a resumed process to its first step
  double eval_s = 300;
  double kill_s = 30;  // SIGKILL to a tree that is gone
};

struct Waiver {
  std::string check;  // the check's id
  std::string reason;
};

struct Plan {
  std::string name;
  std::filesystem::path file;
  CommandTemplate train;
  CommandTemplate resume;
  CommandTemplate eval;                             // empty: no evaluation by a fresh process
  std::string checkpoint_pattern;                   // "{run_dir}/checkpoints/step-{step}"
  std::vector<ComponentRule> component_rules = {};  // what entries are for, over the reader's own
  std::uint64_t save_step = 0;                      // N
  std::uint64_t final_step = 0;                     // N + M
  std::uint64_t horizon = 0;                        // the last step of the trainer's own schedule
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> environment;  // the same in all phases
  Tolerance tensors = {};                          // for entries of checkpoints
  std::map<std::string, Tolerance> metrics;        // "loss", "eval.loss", ...
  std::vector<Component> required;                 // absent is a fail, not a warning
  std::vector<Waiver> waivers;
  Deadlines deadlines;
  std::uint64_t seed = 1;
};

/// `settings` are --set name=value pairs and must name variables that the plan declares.
/// `tool_directory` is what {tool_dir} stands for.
Result<Plan> load_plan(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, std::string>>& settings,
                       const std::filesystem::path& tool_directory);

/// The values of one phase's placeholders, over the plan's variables.
Result<std::vector<std::string>> expand(const Plan& plan, const CommandTemplate& command,
                                        const std::map<std::string, std::string>& values);

}  // namespace ckptverify
