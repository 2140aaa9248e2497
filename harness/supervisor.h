// One process tree from start to end, seen from the harness: started under a guardian, followed
// through its events, held at its saves, killed or seen off. Every wait has a deadline and is woken
// by an event. Must be used from one thread that outlives it: the guardian ends with that thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/plan.h"
#include "harness/observations.h"
#include "harness/trace_reader.h"

namespace ckptverify {

struct SupervisorOptions {
  std::filesystem::path tool;  // started as the guardian
  std::vector<std::string> command;
  std::vector<std::string> environment;  // "NAME=value"; the events' variables are added
  std::filesystem::path working_directory;
  std::filesystem::path log;               // standard output and error
  std::filesystem::path events_directory;  // must exist and be empty
  std::filesystem::path gate;              // made here, a FIFO
  std::vector<std::uint64_t> holds;        // saves after which the trainer is held
  Deadlines deadlines = {};
  int interrupt = -1;  // a descriptor that is readable once the user wants to stop; -1: none
  /// The last step so far, 0 for none; called while waiting as well, so that time is seen to pass.
  std::function<void(std::uint64_t step)> on_step = {};
};

/// A save that a trainer is run to.
struct SaveGoal {
  std::uint64_t step = 0;
  bool after_restore = false;       // the first step has the deadline of a restore
  std::filesystem::path path = {};  // where it will be: for trainers that tell nothing about saves
  /// Whether what is at `path` is a whole checkpoint; asked only of trainers that tell nothing.
  std::function<bool()> complete = {};
  /// Called as soon as the save is first acknowledged, with the path that the trainer told.
  std::function<void(const std::string& told)> on_acknowledged = {};
};

/// The FIFO at which trainers wait: gone with whoever started them, however that ends. Whoever
/// reads all files of the output directory later would hang on it.
class GateFile {
 public:
  explicit GateFile(std::filesystem::path path) : path_(std::move(path)) {}
  GateFile(GateFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  GateFile& operator=(GateFile&&) = delete;
  GateFile(const GateFile&) = delete;
  GateFile& operator=(const GateFile&) = delete;
  ~GateFile() { remove(); }

  void remove();

 private:
  std::filesystem::path path_;
};

enum class Reached {
  kGoal,         // the save was seen
  kEnded,        // the main process ended before
  kMissed,       // a later save was acknowledged, and this one was never begun
  kOverdue,      // a deadline passed
  kInterrupted,  // the user wants to stop
};

class Supervisor {
 public:
  static Result<Supervisor> start(SupervisorOptions options);
  Supervisor(Supervisor&&) = default;
  Supervisor& operator=(Supervisor&&) = delete;
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() = default;  // closes the orders: the guardian kills what is left

  /// Until the save is acknowledged and the trainer is held: at the gate if it honours holds, else
  /// stopped by a signal. A trainer that ends after the save has still reached it.
  Reached await_save(const SaveGoal& goal);
  /// Lets it go on.
  void release();
  /// Until the main process has ended, or the time has passed, which is nobody's fault.
  bool ends_within(double seconds);
  /// Until the main process has ended; `what` names the wait if it takes too long.
  Reached await_end(double deadline_s, const std::string& what);

  /// Whether what was acknowledged at the last goal is not what was there then.
  bool changed_since_acknowledged() const;

  /// SIGKILL to the whole tree, confirmed.
  KillOutcome kill();
  /// What it leaves behind is killed; then everything that was seen of it.
  RunRecord finish();

  bool ended() const { return main_status_.has_value() || !not_started_.empty() || lost_; }
  bool held_at_gate() const { return gate_.is_open(); }
  const Trace& trace() const { return trace_.trace(); }
  pid_t main_pid() const { return main_pid_; }
  pid_t guardian_pid() const { return guardian_pid_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Due {
    Clock::time_point at;
    double allowed_s = 0;
    std::string what;
  };

  Supervisor(SupervisorOptions options, TraceReader trace, GateFile gate)
      : options_(std::move(options)), gate_file_(std::move(gate)), trace_(std::move(trace)) {}
  Result<void> launch_guardian();
  void order(const char* line);
  void read_reports();
  void sweep_orphans();
  std::vector<pid_t> orphans(bool kill) const;
  void take_report(const std::string& line);
  void collect();
  void take_event(const Event& event, std::size_t index);
  void wait(Clock::time_point until);
  bool interrupted() const;
  bool saved(const SaveGoal& goal);
  bool missed(const SaveGoal& goal) const;
  bool acknowledged(std::uint64_t step) const;
  void look_at_acknowledged(const SaveGoal& goal);
  std::vector<std::int64_t> absent_tellers() const;
  void watch(const std::filesystem::path& path);
  bool quiet(const std::string& seen);
  bool saved_by_path(const SaveGoal& goal);
  bool hold(std::uint64_t step);
  bool try_gate();
  void take_late(const Event& event);
  void let_late_ones_pass();
  void stop_tree();
  void end_stuck_guardian();
  void await_gone();
  Due next_due(const SaveGoal& goal) const;
  Reached overdue(const Due& due);
  Exit exit() const;

  SupervisorOptions options_;
  GateFile gate_file_;
  TraceReader trace_;
  Descriptor orders_;
  Descriptor reports_;
  Descriptor gate_;  // open for writing while the trainer waits at it
  pid_t guardian_pid_ = -1;
  std::string unfinished_report_;

  pid_t main_pid_ = -1;
  std::string not_started_;                // why
  std::optional<int> main_status_;         // native
  std::optional<int> status_before_kill_;  // it had ended by itself
  bool stopped_ = false;                   // frozen by SIGSTOP
  bool gone_ = false;                      // the kernel says that nothing is left
  bool lost_ = false;                      // the guardian ended without its last word
  bool kill_ordered_ = false;
  KillOutcome outcome_ = KillOutcome::kNotSent;
  std::uint64_t killed_count_ = 0;

  Clock::time_point started_;
  Clock::time_point last_sign_;  // of progress
  std::uint64_t log_bytes_ = 0;
  std::size_t events_taken_ = 0;
  bool tells_saves_ = false;
  std::optional<std::uint64_t> last_step_;
  std::map<std::uint64_t, std::size_t> saves_;  // acknowledged step to the event's index
  std::optional<std::uint64_t> held_at_;
  std::set<std::uint64_t> released_;   // holds that are over: nobody is to wait at them any more
  std::set<std::int64_t> late_;        // processes whose last event names one of these
  bool acknowledgement_told_ = false;  // of the goal that is awaited

  std::filesystem::path watched_path_;  // of the checkpoint that is awaited
  std::string path_signature_;          // of what is there, when last looked at
  std::string refused_signature_;       // the same, when it was found incomplete or is an old save
  Clock::time_point path_changed_;
  Clock::duration longest_gap_{};  // between two changes of it
  std::vector<pid_t> survivors_;
  std::vector<std::int64_t> out_of_reach_;
  std::map<std::uint64_t, std::set<std::int64_t>> begun_by_;  // processes, by step
  std::map<std::uint64_t, std::set<std::int64_t>> ended_by_;
  std::string acknowledged_signature_;  // of what was there at the last acknowledgement
  std::size_t acknowledgements_ = 0;    // of the goal that is awaited
  bool guardian_stuck_ = false;
  std::string overdue_;
  std::string overdue_text_;
};

}  // namespace ckptverify
