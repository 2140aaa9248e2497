// What became of the processes: the reference that got there, the kill that landed, the restore
// that took a step. A kill that may have missed and a death that is not the trainer's doing prove
// nothing.
#include <csignal>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

bool reached(const RunView& run, std::uint64_t step) {
  return run.record != nullptr && ((run.record->held_at && *run.record->held_at >= step) ||
                                   run.last_step.value_or(0) >= step);
}

void attach_log(Finding& finding, const RunRecord& record) {
  finding.evidence.push_back({"exit", record.exit.text()});
  if (!record.overdue.empty()) finding.evidence.push_back({"was waiting for", record.overdue});
  if (!record.log_tail.empty())
    finding.evidence.push_back({"last lines of its output", record.log_tail});
}

/// SIGKILL that is not ours: most likely the machine ran out of memory.
bool killed_from_outside(const Exit& exit) {
  return exit.kind == ExitKind::kSignalled && exit.signal == SIGKILL &&
         exit.author == ExitAuthor::kItself;
}

Finding reference_finding(const Case& subject) {
  Finding finding{.check = "process.reference", .subject = "reference run", .message = {}};
  const std::string target = step_text(subject.final_step());
  if (reached(subject.reference, subject.final_step())) {
    finding.message = "the reference run trained to " + target;
    return finding;
  }
  finding.status = Status::kInconclusive;
  finding.message = "the reference run ended before " + target + ": " +
                    subject.seen.reference.exit.text() + ", so there is nothing to compare with";
  attach_log(finding, subject.seen.reference);
  return finding;
}

Finding kill_finding(const Case& subject) {
  const RunRecord& run = subject.seen.interrupted;
  const std::string point = step_text(subject.save_step());
  Finding finding{.check = "process.kill",
                  .status = Status::kInconclusive,
                  .subject = "interrupted run",
                  .message = {}};
  switch (run.kill) {
    case KillOutcome::kConfirmed:
      if (run.held_at && *run.held_at != subject.save_step()) {
        finding.message = "the kill landed at " + step_text(*run.held_at) + ", expected " + point;
        break;
      }
      finding.status = Status::kPass;
      finding.message = "SIGKILL after the save at " + point + " ended " +
                        count_text(run.processes_killed, "process", "processes") + " and left none";
      return finding;
    case KillOutcome::kAlreadyGone:
      finding.message = "the trainer had ended by itself before the kill at " + point +
                        ", so the kill proves nothing: " + run.exit.text();
      break;
    case KillOutcome::kSurvivors:
      finding.message = "processes of the killed tree were left after the deadline";
      break;
    case KillOutcome::kNotSent:
      finding.message =
          "the trainer never reached the save at " + point + ", so nothing was killed";
      break;
  }
  attach_log(finding, run);
  return finding;
}

std::string restore_failure(const Exit& exit) {
  switch (exit.kind) {
    case ExitKind::kTimedOut:
      return "the restore hangs: no step within the deadline";
    case ExitKind::kSignalled:
      return "the restore crashes before the first step: " + exit.text();
    case ExitKind::kExited:
      if (exit.code == 0) return "the resumed process ends without a step and reports success";
      return "the resumed process refuses a good checkpoint or fails on it: " + exit.text();
    case ExitKind::kNotStarted:
      break;
  }
  return "the resume command could not be started: " + exit.reason;
}

Finding restore_finding(const Case& subject) {
  Finding finding{.check = "process.restore", .subject = "resumed run", .message = {}};
  const RunRecord* run = subject.resumed.record;
  if (run == nullptr) {
    finding.status = Status::kInconclusive;
    finding.message = "no process was resumed: there was no checkpoint to restore";
  } else if (subject.start == Start::kFromScratch) {
    finding.status = Status::kFail;
    finding.cause = cause(CauseKind::kWrongStart);
    finding.message = "the resumed process restored nothing and silently trained from scratch";
    finding.evidence.push_back({"command", run->command.empty() ? "" : run->command.back()});
    attach_log(finding, *run);
  } else if (subject.resumed.first_step || run->held_at) {
    finding.message = "a fresh process restored the moved copy and took its first step";
  } else {
    const bool unknown_reason =
        run->exit.kind == ExitKind::kNotStarted || killed_from_outside(run->exit);
    finding.status = unknown_reason ? Status::kInconclusive : Status::kFail;
    finding.message = restore_failure(run->exit);
    attach_log(finding, *run);
  }
  return finding;
}

/// Nothing where there was no first step: process.restore has said so.
std::optional<Finding> continue_finding(const Case& subject) {
  const RunRecord* run = subject.resumed.record;
  if (run == nullptr || !subject.resumed.first_step) return std::nullopt;
  const std::string target = step_text(subject.final_step());
  Finding finding{.check = "process.continue", .subject = "resumed run", .message = {}};
  if (reached(subject.resumed, subject.final_step())) {
    finding.message = "the resumed run trained on to " + target;
    return finding;
  }
  finding.status = killed_from_outside(run->exit) ? Status::kInconclusive : Status::kFail;
  finding.message = "the resumed run ended after " + step_text(*subject.resumed.last_step) +
                    ", before " + target + ": " + run->exit.text();
  attach_log(finding, *run);
  return finding;
}

Finding trace_finding(const Case& subject) {
  Finding finding{.check = "process.trace", .subject = "events", .message = {}};
  std::size_t garbled = 0;
  std::size_t events = 0;
  const auto count = [&](const char* name, const RunRecord& run) {
    events += run.trace.events.size();
    garbled += run.trace.garbled.size();
    if (run.trace.garbled.empty()) return;
    const GarbledLine& line = run.trace.garbled.front();
    finding.evidence.push_back(
        {name, line.file + ": line " + std::to_string(line.line) + ": " + line.reason});
  };
  count("reference", subject.seen.reference);
  count("interrupted", subject.seen.interrupted);
  if (subject.seen.resumed) count("resumed", *subject.seen.resumed);
  if (garbled > 0) {
    finding.status = Status::kInconclusive;
    finding.message = count_text(garbled, "line is no event", "lines are no events") +
                      ", so what the trainers said is incomplete";
  } else if (events == 0) {
    finding.status = Status::kNotObserved;
    finding.message = "the trainers wrote no events";
  } else {
    finding.message = "all " + std::to_string(events) + " events of the trainers could be read";
  }
  return finding;
}

}  // namespace

void judge_process(const Case& subject, Judgement& judgement) {
  judgement.findings.push_back(reference_finding(subject));
  judgement.findings.push_back(kill_finding(subject));
  judgement.findings.push_back(restore_finding(subject));
  if (auto finding = continue_finding(subject)) judgement.findings.push_back(*std::move(finding));
  judgement.findings.push_back(trace_finding(subject));
}

}  // namespace ckptverify::judging
