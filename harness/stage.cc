// The surroundings of a phase: what differs between phases is named by the phase, all else is
// equal.

#include "harness/stage.h"

#include <algorithm>
#include <system_error>

#include "ckptverify/count_text.h"
#include "harness/launch.h"

namespace ckptverify {
namespace {

/// With less than this beside a checkpoint, logs and events may already be cut short.
constexpr std::uint64_t kRoomBytes = 64 * 1024;
/// Enough to go and look; a tree of thousands is not listed to the end.
constexpr std::size_t kPidsShown = 10;

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

Result<void> make_directory(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return {};
  return Error{ErrorKind::kUnreadable, "cannot be made: " + error.message(), path.string()};
}

std::string kill_text(const RunRecord& run) {
  if (std::string left = left_over_text(run); !left.empty()) return left;
  if (run.guardian_lost) return "its guardian was killed from outside";
  const std::string sent = "SIGKILL to " + count_text(run.processes_killed, "process");
  switch (run.kill) {
    case KillOutcome::kConfirmed:
      return sent + ", all gone";
    case KillOutcome::kAlreadyGone:
      return "it had ended by itself before the kill";
    case KillOutcome::kSurvivors:
      return sent + ", not all gone in time";
    case KillOutcome::kNotSent:
      break;
  }
  return run.processes_killed > 0 ? sent + " that it left behind, all gone" : std::string();
}

}  // namespace

std::string left_over_text(const RunRecord& run) {
  if (!run.survivors.empty()) {
    std::string pids;
    for (std::size_t index = 0; index < std::min(run.survivors.size(), kPidsShown); ++index) {
      pids += (index == 0 ? "" : ", ") + std::to_string(run.survivors[index]);
    }
    if (run.survivors.size() > kPidsShown) pids += ", ...";
    return count_text(run.survivors.size(), "process is", "processes are") +
           " still alive after SIGKILL: " + pids;
  }
  if (!run.guardian_stuck) return {};
  return "its guardian did not obey the order to kill (stopped by a signal?) and was killed, and "
         "what it left with it";
}

Stage::Stage(const Plan& plan, const ExperimentOptions& options, int interrupt)
    : plan_(plan), options_(options), interrupt_(interrupt) {}

/// Whatever is wrong here, another directory is the remedy: wrong usage.
Result<void> Stage::set_up() {
  std::error_code error;
  output_ = std::filesystem::absolute(options_.output_directory, error).lexically_normal();
  const auto unusable = [this](const std::string& why) {
    return Error{ErrorKind::kUsage, why + "; expected a directory that is new or empty",
                 output_.string()};
  };
  std::filesystem::create_directories(output_, error);
  if (error) return unusable("cannot be made: " + error.message());
  if (!std::filesystem::is_empty(output_, error) || error) return unusable("is not empty");
  for (const char* name : {"run", "work", "events", "logs", "checkpoints", "away"}) {
    // Of two gates that found it empty, only one makes the first of these.
    if (std::filesystem::create_directory(output_ / name, error)) continue;
    return unusable(error ? "cannot be written to: " + error.message()
                          : "is in use by another gate");
  }
  return {};
}

std::filesystem::path Stage::run_directory(const std::string& phase) const {
  return output_ / "run" / phase;
}

std::filesystem::path Stage::working_directory(const PhaseRequest& phase) const {
  return output_ / "work" / phase.directory;
}

Result<std::filesystem::path> Stage::checkpoint_path(const std::filesystem::path& run_directory,
                                                     std::uint64_t step) const {
  CKPTVERIFY_TRY(const std::vector<std::string> path,
                 expand(plan_, {plan_.checkpoint_pattern},
                        {{"run_dir", run_directory.string()}, {"step", std::to_string(step)}}));
  const std::filesystem::path checkpoint = std::filesystem::path(path.front()).lexically_normal();
  return checkpoint.has_filename() ? checkpoint : checkpoint.parent_path();
}

std::vector<std::string> Stage::environment() const {
  std::vector<std::string> unwanted = {"CKPTVERIFY_"};
  for (const auto& [name, value] : plan_.environment) unwanted.push_back(name + "=");
  std::vector<std::string> lines = inherited_environment(unwanted);
  for (const auto& [name, value] : plan_.environment) lines.push_back(name + "=" + value);
  return lines;
}

Result<Supervisor> Stage::begin(const PhaseRequest& phase) {
  std::map<std::string, std::string> values = phase.values;
  values["run_dir"] = run_directory(phase.directory).string();
  SupervisorOptions options;
  CKPTVERIFY_TRY(options.command, expand(plan_, phase.command, values));
  options.tool = options_.tool;
  options.environment = environment();
  options.working_directory = working_directory(phase);
  options.events_directory = output_ / "events" / phase.directory;
  options.log = output_ / "logs" / (phase.directory + ".log");
  options.gate = options.events_directory / "gate";
  options.holds = phase.holds;
  options.deadlines = plan_.deadlines;
  options.interrupt = interrupt_;
  if (options_.progress) {
    options.on_step = [this, name = phase.name](std::uint64_t step) {
      options_.progress(name, step, plan_.final_step);
    };
    options_.progress(phase.name, 0, plan_.final_step);
  }
  CKPTVERIFY_TRY_VOID(make_directory(run_directory(phase.directory)));
  CKPTVERIFY_TRY_VOID(make_directory(options.working_directory));
  CKPTVERIFY_TRY_VOID(make_directory(options.events_directory));
  phase_began_ = Clock::now();
  copied_before_phase_s_ = copy_s_;
  return Supervisor::start(std::move(options));
}

RunRecord Stage::end(const PhaseRequest& phase, Supervisor supervisor) {
  RunRecord run = supervisor.finish();
  const double wall_s = seconds_between(phase_began_, Clock::now());
  trainer_s_ += std::max(0.0, wall_s - (copy_s_ - copied_before_phase_s_));
  PhaseRecord record;
  record.name = phase.name;
  record.command = run.command;
  record.started_s = seconds_between(began_, phase_began_);
  record.wall_s = wall_s;
  record.exit = run.exit.text();
  record.kill = kill_text(run);
  if (const std::string left = left_over_text(run); !left.empty() && left_over_.empty()) {
    left_over_ = phase.name + ": " + left;
  }
  std::error_code unknown;
  const auto space = std::filesystem::space(output_, unknown);
  run.disk_full = !unknown && space.available < checkpoint_bytes_ + kRoomBytes;
  for (const Event& event : run.trace.events) {
    if (const auto* step = std::get_if<StepEvent>(&event.what)) {
      if (record.first_step == 0) record.first_step = step->step;
      record.last_step = step->step;
    }
  }
  record.log = "logs/" + phase.directory + ".log";
  record.events = "events/" + phase.directory;
  phases_.push_back(std::move(record));
  return run;
}

Result<Snapshot> Stage::copy(const std::filesystem::path& checkpoint,
                             const std::filesystem::path& target) {
  const Clock::time_point begin = Clock::now();
  Result<Snapshot> snapshot = take_snapshot(checkpoint, target, interrupt_);
  copy_s_ += seconds_between(begin, Clock::now());
  if (snapshot) {
    checkpoint_bytes_ = std::max(checkpoint_bytes_, snapshot->bytes);
    any_copied_ = true;
    all_reflinks_ = all_reflinks_ && snapshot->method == CopyMethod::kReflink;
  }
  return snapshot;
}

Timings Stage::timings() const {
  Timings timings;
  timings.wall_s = seconds_between(began_, Clock::now());
  timings.trainer_s = trainer_s_;
  timings.copy_s = copy_s_;
  timings.own_s = std::max(0.0, timings.wall_s - trainer_s_ - copy_s_);
  if (any_copied_) {
    const CopyMethod method = all_reflinks_ ? CopyMethod::kReflink : CopyMethod::kCopy;
    timings.copy_method = copy_method_name(method);
  }
  return timings;
}

}  // namespace ckptverify
