// The record of one command's verdict: docs/report.schema.json is its JSON. Renderers read nothing
// else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/finding.h"

namespace ckptverify {

/// One process tree that we ran. Times are seconds since the command began.
struct PhaseRecord {
  std::string name = {};  // "reference", "interrupted", "evaluation at N", "restored", ...
  std::vector<std::string> command = {};
  double started_s = 0;
  double wall_s = 0;
  std::string exit = {};         // Exit::text()
  std::string kill = {};         // "SIGKILL to 3 processes, all gone"; empty if not killed
  std::uint64_t first_step = 0;  // 0: no step was seen
  std::uint64_t last_step = 0;
  std::string log = {};  // relative to the output directory
  std::string events = {};
};

/// A component's digests in three places; empty where it was not seen.
struct IdentityRow {
  std::string component = {};
  std::string live = {};
  std::string disk = {};
  std::string restored = {};
  Status status = Status::kNotObserved;
};

struct Curve {
  std::string metric = {};                                    // "loss", "lr", "scale"
  std::string run = {};                                       // "reference", "restored"
  std::vector<std::pair<std::uint64_t, double>> points = {};  // step, value
};

/// Where the wall time went, in seconds.
struct Timings {
  double wall_s = 0;
  double trainer_s = 0;          // while a trainer ran
  double copy_s = 0;             // copying snapshots; reflinks: cloning
  double own_s = 0;              // the rest: reading, hashing, judging
  std::string copy_method = {};  // "reflink", "copy"
};

struct Report {
  std::string command = {};  // "run", "check"
  std::string subject = {};  // plan or checkpoint
  Verdict verdict = Verdict::kInconclusive;
  std::vector<RankedCause> causes = {};
  std::vector<Finding> checks = {};
  std::vector<std::string> proven = {};
  std::vector<std::string> not_proven = {};
  std::uint64_t save_step = 0;   // N; 0 outside of run
  std::uint64_t final_step = 0;  // N + M
  std::string fingerprint = {};  // of the checkpoint at N
  std::vector<PhaseRecord> phases = {};
  std::vector<IdentityRow> identity = {};
  std::vector<Curve> curves = {};
  Timings timings = {};
  std::map<std::string, std::string> environment = {};
  std::string output_directory = {};
  std::string repeat_command = {};
  std::uint64_t seed = 0;
};

/// Fills verdict and causes from the checks.
void conclude(Report& report);

}  // namespace ckptverify
