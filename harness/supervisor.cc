// One loop for every wait: reports of the guardian, changes of the events, the user's wish to stop,
// the deadline. supervisor_saves.cc tells when a save is reached.

#include "harness/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <system_error>

#include "harness/file_signs.h"
#include "harness/guardian.h"
#include "harness/launch.h"
#include "harness/process_tree.h"

namespace ckptverify {
namespace {

using std::chrono::milliseconds;

/// The longest that one poll() lasts, so that the log's growth is noticed as a sign of progress.
constexpr milliseconds kPollMax{500};
/// Between two looks whether somebody waits at a hold that is over.
constexpr milliseconds kLateRetry{5};

std::string seconds_text(double seconds) {
  std::array<char, 32> text;
  (void)std::snprintf(text.data(), text.size(), "%g s", seconds);
  return text.data();
}

std::chrono::nanoseconds duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

std::optional<std::int64_t> next_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

Error system_error(const std::string& what, const std::filesystem::path& subject) {
  return Error{ErrorKind::kUnreadable, what + ": " + std::generic_category().message(errno),
               subject.string()};
}

std::string holds_text(const std::vector<std::uint64_t>& steps) {
  std::string text;
  for (const std::uint64_t step : steps) {
    text += (text.empty() ? "" : ",") + std::string("save_end@") + std::to_string(step);
  }
  return text;
}

}  // namespace

Result<Supervisor> Supervisor::start(SupervisorOptions options) {
  if (::mkfifo(options.gate.c_str(), 0600) != 0) {
    return system_error("cannot be made", options.gate);
  }
  GateFile gate(options.gate);
  CKPTVERIFY_TRY(TraceReader trace, TraceReader::follow(options.events_directory));
  Supervisor supervisor(std::move(options), std::move(trace), std::move(gate));
  CKPTVERIFY_TRY_VOID(supervisor.launch_guardian());
  return supervisor;
}

Result<void> Supervisor::launch_guardian() {
  int orders[2];  // a socket, so that an order to a dead guardian is an error and no signal
  int reports[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, orders) != 0) {
    return system_error("no socket for its orders", options_.tool);
  }
  orders_ = Descriptor(orders[0]);
  const Descriptor guardian_orders(orders[1]);
  if (::pipe2(reports, O_CLOEXEC) != 0) {
    return system_error("no pipe for its reports", options_.tool);
  }
  reports_ = Descriptor(reports[0]);
  const Descriptor guardian_reports(reports[1]);
  (void)::fcntl(reports_.number(), F_SETFL, O_NONBLOCK);
  const Descriptor log(
      ::open(options_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.is_open()) return system_error("cannot be opened", options_.log);

  Launch guardian;
  guardian.command = {options_.tool.string(), kGuardianSubcommand};
  guardian.command.insert(guardian.command.end(), options_.command.begin(), options_.command.end());
  guardian.environment = options_.environment;
  guardian.environment.push_back("CKPTVERIFY_EVENTS=" +
                                 (options_.events_directory / "rank-{rank}-{pid}.jsonl").string());
  guardian.environment.push_back("CKPTVERIFY_HOLD=" + holds_text(options_.holds));
  guardian.environment.push_back("CKPTVERIFY_GATE=" + options_.gate.string());
  guardian.working_directory = options_.working_directory;
  guardian.standard_input = guardian_orders.number();
  guardian.standard_output = guardian_reports.number();
  guardian.standard_error = log.number();
  guardian.session = ProcessSession::kOwn;  // a Ctrl-C is for us, not for it
  guardian.parent_death_signal = SIGTERM;   // besides the end of its orders
  // Should the guardian be killed, its orphans come to us and not to init.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL) != 0) {
    return system_error("cannot become a subreaper", options_.tool);
  }
  started_ = last_sign_ = Clock::now();
  CKPTVERIFY_TRY(guardian_pid_, launch(guardian));
  return {};
}

void Supervisor::order(const char* line) {
  const std::string_view text = line;
  while (::send(orders_.number(), text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

void Supervisor::read_reports() {
  std::array<char, 4096> buffer;
  while (!gone_ && !lost_) {
    const ssize_t count = ::read(reports_.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) {
      lost_ = not_started_.empty();
      gone_ = !lost_;
      if (lost_) sweep_orphans();
      return;
    }
    unfinished_report_.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end; (end = unfinished_report_.find('\n')) != std::string::npos;) {
      take_report(unfinished_report_.substr(0, end));
      unfinished_report_.erase(0, end + 1);
    }
  }
}

/// What a lost guardian left, ended or not. Trainers' processes are in sessions of their own since
/// the guardian's launch; what shares ours (readers' children) is not theirs.
std::vector<pid_t> Supervisor::orphans(bool kill) const {
  const pid_t our_session = ::getsid(0);
  std::vector<pid_t> left;
  for (const ProcessState& process : descendants(::getpid())) {
    if (process.pid == guardian_pid_ || ::getsid(process.pid) == our_session) continue;
    if (!kill && process.ended()) continue;
    if (kill && !process.ended()) ::kill(process.pid, SIGKILL);
    if (kill) (void)::waitpid(process.pid, nullptr, WNOHANG);
    left.push_back(process.pid);
  }
  return left;
}

void Supervisor::sweep_orphans() {
  const auto until = Clock::now() + duration(options_.deadlines.kill_s);
  // Its reports end before it does, and only then its children are ours.
  for (siginfo_t ended = {}; ended.si_pid == 0 && Clock::now() < until;) {
    if (::waitid(P_PID, static_cast<id_t>(guardian_pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0)
      break;
    if (ended.si_pid == 0) (void)::poll(nullptr, 0, 1);
  }
  // Also after the last: its children come to us next.
  while (!orphans(true).empty() && Clock::now() < until) {
    (void)::poll(nullptr, 0, 1);  // the kernel has yet to end them
  }
  survivors_ = orphans(false);
}

void Supervisor::take_report(const std::string& line) {
  std::string_view rest = line;
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size());
  if (word == "not-started") {
    not_started_ = rest.empty() ? "no reason given" : std::string(rest.substr(1));
    return;
  }
  const std::optional<std::int64_t> number = next_number(rest);
  if (!number) return;
  if (word == "started") main_pid_ = static_cast<pid_t>(*number);
  if (word == "exited") main_status_ = static_cast<int>(*number);
  if (word == "stopped") stopped_ = true;
  if (word == "continued") stopped_ = false;
  if (word == "gone") {
    killed_count_ = static_cast<std::uint64_t>(*number);
    gone_ = true;
  }
}

void Supervisor::collect() {
  read_reports();
  trace_.collect();
  const auto& events = trace_.trace().events;
  if (events_taken_ < events.size()) last_sign_ = Clock::now();
  for (; events_taken_ < events.size(); ++events_taken_) {
    take_event(events[events_taken_], events_taken_);
  }
  // A trainer without a probe has its output as its only sign of life.
  struct stat status = {};
  if (events.empty() && ::stat(options_.log.c_str(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) != log_bytes_) {
    log_bytes_ = static_cast<std::uint64_t>(status.st_size);
    last_sign_ = Clock::now();
  }
}

void Supervisor::take_event(const Event& event, std::size_t index) {
  if (const auto* start = std::get_if<StartEvent>(&event.what)) {
    tells_saves_ = tells_saves_ || std::find(start->hooks.begin(), start->hooks.end(), "save") !=
                                       start->hooks.end();
  } else if (const auto* step = std::get_if<StepEvent>(&event.what)) {
    last_step_ = step->step;
    if (options_.on_step) options_.on_step(step->step);
  } else if (const auto* save = std::get_if<SaveEvent>(&event.what)) {
    tells_saves_ = true;
    (save->point == SavePoint::kEnd ? ended_by_ : begun_by_)[save->step].insert(event.pid);
    if (save->point == SavePoint::kEnd) saves_[save->step] = index;
  }
  take_late(event);
}

void Supervisor::wait(Clock::time_point until) {
  const Clock::time_point now = Clock::now();
  const auto left = std::chrono::ceil<milliseconds>(std::max(until, now) - now);
  const auto timeout = std::min(left, kPollMax);
  if (options_.on_step && !kill_ordered_) options_.on_step(last_step_.value_or(0));
  std::array<pollfd, 3> ready = {pollfd{trace_.descriptor(), POLLIN, 0},
                                 pollfd{gone_ || lost_ ? -1 : reports_.number(), POLLIN, 0},
                                 pollfd{kill_ordered_ ? -1 : options_.interrupt, POLLIN, 0}};
  (void)::poll(ready.data(), ready.size(), static_cast<int>(timeout.count()));
}

bool Supervisor::interrupted() const {
  pollfd ready = {options_.interrupt, POLLIN, 0};
  return options_.interrupt >= 0 && ::poll(&ready, 1, 0) == 1;
}

Reached Supervisor::overdue(const Due& due) {
  overdue_ = due.what;
  overdue_text_ = "deadline of " + seconds_text(due.allowed_s) + " at " + due.what;
  return Reached::kOverdue;
}

Supervisor::Due Supervisor::next_due(const SaveGoal& goal) const {
  const Deadlines& allowed = options_.deadlines;
  const auto due = [](Clock::time_point from, double seconds, std::string what) {
    return Due{from + duration(seconds), seconds, std::move(what)};
  };
  if (trace().events.empty() && log_bytes_ == 0) {
    return due(started_, allowed.start_s, "the first event");
  }
  if (!trace().events.empty() && !last_step_) {
    if (goal.after_restore) {
      return due(started_, allowed.restore_s, "the first step after the restore");
    }
    return due(last_sign_, allowed.step_s, "the first step");
  }
  const bool at_save = !last_step_ || *last_step_ >= goal.step;
  return due(last_sign_, allowed.step_s,
             at_save ? "the save at step " + std::to_string(goal.step)
                     : "step " + std::to_string(*last_step_ + 1));
}

void Supervisor::stop_tree() {
  order("stop\n");
  const Clock::time_point until = Clock::now() + duration(options_.deadlines.kill_s);
  while (!stopped_ && !ended() && Clock::now() < until) {
    wait(until);
    collect();
  }
}

void Supervisor::release() {
  gate_.close();
  if (held_at_) released_.insert(*held_at_);
  late_.clear();
  for (std::size_t index = 0; index < events_taken_; ++index) {
    take_late(trace().events[index]);
  }
  if (std::exchange(stopped_, false)) order("continue\n");
  last_sign_ = Clock::now();
}

bool Supervisor::ends_within(double seconds) {
  const Clock::time_point until = Clock::now() + duration(seconds);
  while (true) {
    collect();
    let_late_ones_pass();
    if (ended()) return true;
    if (Clock::now() >= until || interrupted()) return false;
    wait(late_.empty() ? until : std::min(until, Clock::now() + kLateRetry));
  }
}

Reached Supervisor::await_end(double deadline_s, const std::string& what) {
  if (ends_within(deadline_s)) return Reached::kGoal;
  if (interrupted()) return Reached::kInterrupted;
  return overdue({Clock::now(), deadline_s, what});
}

void Supervisor::await_gone() {
  kill_ordered_ = true;
  order("kill\n");
  const Clock::time_point until = Clock::now() + duration(options_.deadlines.kill_s);
  while (!gone_ && !lost_ && Clock::now() < until) {
    wait(until);
    read_reports();
  }
  if (!gone_ && !lost_) end_stuck_guardian();
  gate_.close();
  orders_.close();
  if (gone_ || lost_) {
    while (::waitpid(guardian_pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

/// A guardian that is stopped, or that waits for what no SIGKILL ends, is killed in its turn: what
/// it leaves comes to us.
void Supervisor::end_stuck_guardian() {
  guardian_stuck_ = true;
  (void)::kill(guardian_pid_, SIGKILL);
  const Clock::time_point until = Clock::now() + duration(options_.deadlines.kill_s);
  while (!gone_ && !lost_ && Clock::now() < until) {
    wait(until);
    read_reports();  // at their end it sweeps
  }
  if (!gone_ && !lost_) survivors_ = {guardian_pid_};
}

/// Who told the save that it is held at and is not in the tree that is about to be killed. A lost
/// guardian's tree is not known.
std::vector<std::int64_t> Supervisor::absent_tellers() const {
  std::vector<std::int64_t> absent;
  if (!held_at_ || gone_ || lost_) return absent;
  const std::set<std::int64_t> present = numbers_of(descendants(guardian_pid_));
  std::set<std::int64_t> tellers;
  for (const Event& event : trace().events) {
    const auto* save = std::get_if<SaveEvent>(&event.what);
    if (save != nullptr && save->point == SavePoint::kEnd && save->step == *held_at_ &&
        event.role == "trainer") {
      tellers.insert(event.pid);
    }
  }
  std::set_difference(tellers.begin(), tellers.end(), present.begin(), present.end(),
                      std::back_inserter(absent));
  return absent;
}

KillOutcome Supervisor::kill() {
  if (kill_ordered_) return outcome_;
  collect();
  status_before_kill_ = main_status_;
  out_of_reach_ = absent_tellers();
  await_gone();
  const bool ours = !status_before_kill_ && main_status_ && WIFSIGNALED(*main_status_) &&
                    WTERMSIG(*main_status_) == SIGKILL;
  outcome_ = !gone_                  ? KillOutcome::kSurvivors
             : !not_started_.empty() ? KillOutcome::kNotSent
             : ours                  ? KillOutcome::kConfirmed
                                     : KillOutcome::kAlreadyGone;
  return outcome_;
}

Exit Supervisor::exit() const {
  if (!not_started_.empty()) return Exit{.kind = ExitKind::kNotStarted, .reason = not_started_};
  if (!overdue_text_.empty()) {
    return Exit{.kind = ExitKind::kTimedOut, .author = ExitAuthor::kUs, .reason = overdue_text_};
  }
  if (main_status_) {
    const bool ours = kill_ordered_ && !status_before_kill_;
    return exit_from_wait_status(*main_status_, ours ? ExitAuthor::kUs : ExitAuthor::kItself);
  }
  if (guardian_stuck_ && survivors_.empty()) {
    return Exit{.kind = ExitKind::kTimedOut,
                .author = ExitAuthor::kUs,
                .reason = "its guardian did not answer and was killed, and all of it with it"};
  }
  return Exit{
      .kind = ExitKind::kTimedOut,
      .reason = lost_ && !guardian_stuck_
                    ? "its guardian was lost: how it ended is not known"
                    : "not gone " + seconds_text(options_.deadlines.kill_s) + " after SIGKILL"};
}

void GateFile::remove() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(std::exchange(path_, {}), ignored);
}

RunRecord Supervisor::finish() {
  if (!kill_ordered_) {
    collect();
    if (ended()) {
      status_before_kill_ = main_status_;
      await_gone();  // what it left behind
      if (!gone_) outcome_ = KillOutcome::kSurvivors;
    } else {
      kill();
    }
  }
  gate_file_.remove();
  RunRecord record;
  record.command = options_.command;
  record.trace = trace_.finish();
  record.exit = exit();
  record.kill = outcome_;
  record.processes_killed = killed_count_;
  record.held_at = held_at_;
  record.overdue = overdue_;
  record.log_tail = last_lines(options_.log);
  record.guardian_lost = lost_ && !guardian_stuck_;
  record.guardian_stuck = guardian_stuck_;
  record.survivors = survivors_;
  record.out_of_reach = out_of_reach_;
  return record;
}

}  // namespace ckptverify
