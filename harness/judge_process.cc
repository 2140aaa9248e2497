// What became of the processes: the reference that got there, the kill that landed, the restore
// that took a step. A kill that may have missed and a death that is not the trainer's doing prove
// nothing.
#include <csignal>
#include <filesystem>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

/// At the save of that step, which is more than having taken the step.
bool reached(const RunView& run, std::uint64_t step) {
  return run.record != nullptr && run.record->held_at == step;
}

void attach_log(Finding& finding, const RunRecord& record) {
  finding.evidence.push_back({"exit", record.exit.text()});
  if (!record.overdue.empty()) finding.evidence.push_back({"was waiting for", record.overdue});
  if (!record.log_tail.empty())
    finding.evidence.push_back({"last lines of its output", record.log_tail});
}

/// Why the end of a run is not held against its trainer; empty if it is.
std::string outside_reason(const Case& subject, const RunRecord& run) {
  const Exit& exit = run.exit;
  if (run.guardian_lost) return "its guardian was killed from outside";
  if (exit.kind == ExitKind::kNotStarted) return "it could not be started";
  // Most likely the machine ran out of memory.
  if (exit.kind == ExitKind::kSignalled && exit.signal == SIGKILL &&
      exit.author == ExitAuthor::kItself) {
    return "it was killed from outside";
  }
  if (!subject.seen.broken_off.empty() && exit.author == ExitAuthor::kUs && run.overdue.empty()) {
    return "the gate was broken off: " + subject.seen.broken_off;
  }
  if (run.disk_full) return "the disk of the output directory is full";
  return {};
}

void excuse(Finding& finding, const std::string& outside) {
  finding.status = outside.empty() ? Status::kFail : Status::kInconclusive;
  if (!outside.empty()) finding.evidence.push_back({"not held against the trainer", outside});
}

/// The steps whose saves a run acknowledged: "steps 5, 10"; empty where it told of none.
std::string saves_text(const RunRecord& run) {
  std::set<std::uint64_t> steps;
  for (const Event& event : run.trace.events)
    if (const auto* save = std::get_if<SaveEvent>(&event.what))
      if (save->point == SavePoint::kEnd) steps.insert(save->step);
  std::string text;
  for (const std::uint64_t step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  if (text.empty()) return text;
  return (steps.size() == 1 ? "step " : "steps ") + text;
}

/// What there was instead of a save: other saves that were told, or other files.
std::string instead_of(const RunRecord& run, const MissedSave& missed) {
  const std::string told = saves_text(run);
  if (!told.empty())
    return "saves were told at " + told + " and none at " + step_text(missed.step) +
           ", which is the plan's; correct its [steps], or where the trainer saves";
  return "no whole checkpoint was at " + missed.path +
         ", where the plan's checkpoints.path says; the run's directory holds " + missed.files;
}

/// What is wrong with the end of a run that got where it should; empty if nothing.
std::string bad_end(const RunRecord& run) {
  if (run.kill == KillOutcome::kSurvivors) return "processes of it were left after the kill";
  const bool failed = run.exit.kind == ExitKind::kSignalled ||
                      (run.exit.kind == ExitKind::kExited && run.exit.code != 0);
  if (run.kill == KillOutcome::kAlreadyGone && failed)
    return "it died by itself before the kill: " + run.exit.text();
  return {};
}

/// A run that got there passes unless its end was a bad one.
void end_well(Finding& finding, const RunRecord& run) {
  const std::string fault = bad_end(run);
  if (fault.empty()) return;
  finding.status = Status::kInconclusive;
  finding.message += ", and " + fault;
  attach_log(finding, run);
}

bool same_path(const std::string& path, const std::string& other) {
  return std::filesystem::path(path).lexically_normal() ==
         std::filesystem::path(other).lexically_normal();
}

/// Where the trainer said that it saved that step; empty if it did not.
std::string acknowledged_path(const RunRecord& run, std::uint64_t step) {
  for (const Event& event : run.trace.events)
    if (const auto* save = std::get_if<SaveEvent>(&event.what))
      if (save->point == SavePoint::kEnd && save->step == step) return save->path;
  return {};
}

Finding reference_finding(const Case& subject) {
  Finding finding{.check = "process.reference", .subject = "reference run", .message = {}};
  const std::string target = step_text(subject.final_step());
  if (subject.seen.reference.lost_save) {
    finding.status = Status::kInconclusive;
    finding.message = "the reference run was ended at " +
                      step_text(subject.seen.reference.lost_save->step) +
                      ", where its save left nothing to compare with at " +
                      subject.seen.reference.lost_save->path;
    const std::string told =
        acknowledged_path(subject.seen.reference, subject.seen.reference.lost_save->step);
    if (!told.empty() && !same_path(told, subject.seen.reference.lost_save->path))
      finding.message +=
          "; the trainer says that it saved to " + told + ": correct the plan's checkpoints.path";
    return finding;
  }
  if (reached(subject.reference, subject.final_step())) {
    finding.message = subject.reference.last_step
                          ? "the reference run trained to " + target
                          : "the reference run wrote its checkpoint of " + target;
    end_well(finding, subject.seen.reference);
    return finding;
  }
  finding.status = Status::kInconclusive;
  if (const auto& missed = subject.seen.reference.missed_save) {
    finding.message = "the reference run came to no save at " + step_text(missed->step) + " (" +
                      subject.seen.reference.exit.text() +
                      "): " + instead_of(subject.seen.reference, *missed);
    attach_log(finding, subject.seen.reference);
    return finding;
  }
  const bool took_it = subject.reference.last_step.value_or(0) >= subject.final_step();
  finding.message = "the reference run ended before " + std::string(took_it ? "its save at " : "") +
                    target + ": " + subject.seen.reference.exit.text() +
                    ", so there is nothing to compare with";
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
      if (run.held_at != subject.save_step()) {
        finding.message = "the kill landed before the save at " + point;
        if (run.missed_save) finding.message += ": " + instead_of(run, *run.missed_save);
        break;
      }
      if (!run.out_of_reach.empty()) {
        finding.message = "process " + std::to_string(run.out_of_reach.front()) +
                          ", which told the save at " + point +
                          ", was not there to be killed: it had ended by itself, or it runs where "
                          "the gate does not reach (a container, a server, another host)";
        break;
      }
      finding.status = Status::kPass;
      finding.message = "SIGKILL after the save at " + point + " ended " +
                        count_text(run.processes_killed, "process") + " and left none";
      return finding;
    case KillOutcome::kAlreadyGone:
      finding.message = "the trainer had ended by itself before the kill at " + point +
                        ", so the kill proves nothing: " + run.exit.text() +
                        "; give it more steps or longer ones after that save, or let it hold there "
                        "by telling save_end (docs/trainer-contract.md)";
      break;
    case KillOutcome::kSurvivors:
      finding.message = "processes of the killed tree were left after the deadline";
      break;
    case KillOutcome::kNotSent:
      finding.message =
          run.command.empty()
              ? "the run that was to be killed at " + point +
                    " was not started: the reference run did not end as it should"
              : "the trainer never reached the save at " + point + ", so nothing was killed";
      if (run.missed_save) finding.message += ": " + instead_of(run, *run.missed_save);
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
      return "the resumed process refuses the checkpoint or fails on it: " + exit.text();
    case ExitKind::kNotStarted:
      break;
  }
  return "the resume command could not be started: " + exit.reason;
}

/// A later checkpoint shows that something trained, and not from what.
void tell_of_unseen_restore(const Case& subject, Finding& finding) {
  finding.status = Status::kNotObserved;
  finding.message = "a fresh process was given the moved copy and wrote its checkpoint of " +
                    step_text(subject.final_step()) +
                    "; it told no step, so whether it restored was not seen";
  if (!subject.seen.resumed_saved_again) return;
  finding.status = Status::kInconclusive;
  finding.message +=
      ", and it wrote a checkpoint of " + step_text(subject.save_step()) +
      " again, as a run does that begins from scratch or counts from an earlier step";
}

std::string command_text(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"") == std::string::npos;
    text += (text.empty() ? "" : " ") + (plain ? word : "'" + word + "'");
  }
  return text;
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
    finding.evidence.push_back({"command", command_text(run->command)});
    attach_log(finding, *run);
  } else if (subject.seen.checkpoint_opened == false &&
             (subject.resumed.first_step || run->held_at)) {
    finding.status = Status::kFail;
    finding.cause = cause(CauseKind::kWrongStart);
    finding.message =
        "the resumed run never opened a file of the checkpoint that it was given: what it goes on "
        "from lies elsewhere";
    finding.evidence.push_back({"command", command_text(run->command)});
  } else if (subject.resumed.first_step) {
    finding.message = std::string("a fresh process ") +
                      (subject.resumed.restored() != nullptr ? "restored" : "was given") +
                      " the moved copy and took its first step";
  } else if (run->held_at) {
    tell_of_unseen_restore(subject, finding);
  } else {
    const std::string outside = outside_reason(subject, *run);
    excuse(finding, outside);
    finding.message = outside.empty() ? restore_failure(run->exit)
                                      : "the resumed process took no step: " + outside;
    attach_log(finding, *run);
  }
  return finding;
}

/// Nothing where there was no first step: process.restore has said so.
std::optional<Finding> continue_finding(const Case& subject) {
  const RunRecord* run = subject.resumed.record;
  if (run == nullptr || (!subject.resumed.first_step && !run->held_at)) return std::nullopt;
  const std::string target = step_text(subject.final_step());
  Finding finding{.check = "process.continue", .subject = "resumed run", .message = {}};
  if (reached(subject.resumed, subject.final_step())) {
    finding.message = subject.resumed.last_step
                          ? "the resumed run trained on to " + target
                          : "the resumed run wrote its checkpoint of " + target;
    end_well(finding, *run);
    return finding;
  }
  excuse(finding, outside_reason(subject, *run));
  const std::uint64_t last = subject.resumed.last_step.value_or(0);
  finding.message =
      "the resumed run ended after " + step_text(last) +
      (last < subject.final_step() ? ", before " + target : " and before its save was done") +
      ": " + run->exit.text();
  if (run->missed_save) finding.message += "; " + instead_of(*run, *run->missed_save);
  attach_log(finding, *run);
  return finding;
}

/// A save that left nothing to look at; an acknowledged one that is not there is lost.
Finding lost_save_finding(const char* name, const RunRecord& run) {
  const LostSave& lost = *run.lost_save;
  Finding finding{.check = "process.save", .subject = name, .message = {}};
  const std::string saved = "the " + std::string(name) + "'s save at " + step_text(lost.step);
  const std::string told = acknowledged_path(run, lost.step);
  if (!lost.why.empty()) {
    finding.status = Status::kInconclusive;
    finding.message = saved + " cannot be copied: " + lost.why;
  } else if (lost.unfinished) {
    finding.status = Status::kFail;
    finding.cause = cause(CauseKind::kAsyncExit);
    finding.message =
        saved + " was acknowledged, and its files still changed afterwards: " + lost.path;
  } else if (same_path(told, lost.path)) {
    finding.status = Status::kFail;
    finding.cause = cause(CauseKind::kAsyncExit);
    finding.message = saved + " was acknowledged, and nothing is there: " + lost.path;
  } else {
    finding.status = Status::kInconclusive;
    finding.message = saved + " left nothing where the plan says that it is: " + lost.path;
    if (!told.empty()) finding.evidence.push_back({"the trainer says that it saved to", told});
  }
  if (!lost.files.empty()) finding.evidence.push_back({"the run's directory holds", lost.files});
  return finding;
}

Finding save_finding(const Case& subject) {
  const Observations& seen = subject.seen;
  if (seen.reference.lost_save) return lost_save_finding("reference run", seen.reference);
  if (seen.interrupted.lost_save) return lost_save_finding("interrupted run", seen.interrupted);
  if (seen.resumed && seen.resumed->lost_save)
    return lost_save_finding("resumed run", *seen.resumed);
  Finding finding{.check = "process.save", .subject = "saves", .message = {}};
  finding.message = "every save was where the plan says, when it was acknowledged";
  if (seen.saved_changed_later) {
    finding.status = Status::kWarn;
    finding.message = "the checkpoint of " + step_text(subject.save_step()) +
                      " changed while the reference trained on: a later save writes into it, and "
                      "one that is cut short destroys it";
  }
  if (!seen.reference.held_at) {
    finding.status = Status::kNotObserved;
    finding.message = "no save was seen";
    if (const auto& missed = seen.reference.missed_save)
      finding.message += ": " + instead_of(seen.reference, *missed);
  } else if (saves_text(seen.reference).empty()) {
    finding.message =
        "every save was where the plan says; none was acknowledged, so they were "
        "seen by their files alone";
  }
  return finding;
}

}  // namespace

void judge_process(const Case& subject, Judgement& judgement) {
  judgement.findings.push_back(reference_finding(subject));
  judgement.findings.push_back(kill_finding(subject));
  judgement.findings.push_back(restore_finding(subject));
  if (auto finding = continue_finding(subject)) judgement.findings.push_back(*std::move(finding));
  judgement.findings.push_back(save_finding(subject));
  judge_trace(subject, judgement);
  if (!subject.seen.broken_off.empty())
    judgement.findings.push_back(
        {.check = "process.gate",
         .status = Status::kInconclusive,
         .subject = "gate",
         .message = "the gate was broken off before it was done: " + subject.seen.broken_off});
}

}  // namespace ckptverify::judging
