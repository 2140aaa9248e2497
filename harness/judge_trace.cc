// Whether what the trainers told is whole and of one piece: no line garbled, no event lost, steps
// that count up, one process a rank, one state at one moment. Where it is not, which of the figures
// count is open, and nothing that rests on them is proven.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

/// What is wrong with one run's events, by kind: how often, and the first of it.
struct Disorder {
  std::size_t count = 0;
  std::string first;
  void note(std::string text) {
    if (count++ == 0) first = std::move(text);
  }
};

std::string process_text(const Event& event) {
  return "rank " + std::to_string(event.rank) + ", process " + std::to_string(event.pid);
}

/// Steps of one rank that do not count up, whichever process tells them.
Disorder steps_out_of_order(const Trace& trace) {
  Disorder disorder;
  std::map<std::uint32_t, std::uint64_t> last;
  for (const Event& event : trace.events) {
    const auto* step = std::get_if<StepEvent>(&event.what);
    if (step == nullptr || event.role != "trainer") continue;
    const auto [before, is_first] = last.try_emplace(event.rank, step->step);
    if (!is_first && step->step <= before->second)
      disorder.note(step_text(step->step) + " after " + step_text(before->second) + ", " +
                    process_text(event));
    before->second = step->step;
  }
  return disorder;
}

/// Ranks that more than one process of a run played: a launcher that began anew.
Disorder restarts(const Trace& trace) {
  Disorder disorder;
  std::map<std::uint32_t, std::int64_t> players;
  for (const Event& event : trace.events) {
    if (event.role != "trainer" || !std::holds_alternative<StepEvent>(event.what)) continue;
    const auto [player, is_first] = players.try_emplace(event.rank, event.pid);
    if (is_first || player->second == event.pid) continue;
    disorder.note(process_text(event) + " after process " + std::to_string(player->second));
    player->second = event.pid;
  }
  return disorder;
}

/// What one process told: the numbers, and the first event.
struct Teller {
  std::set<std::uint64_t> numbers = {};
  const Event* first = nullptr;
};
using Tellers = std::map<std::int64_t, Teller>;

/// A worker that was forked goes on with its parent's numbers.
bool went_on_after_fork(const Tellers& tellers, std::int64_t pid) {
  const Teller& own = tellers.at(pid);
  const std::uint64_t first = *own.numbers.begin();
  return first > 0 && std::any_of(tellers.begin(), tellers.end(), [&](const auto& other) {
           return other.first != pid && other.second.first->rank == own.first->rank &&
                  other.second.numbers.contains(first - 1);
         });
}

/// Numbers that a process left out.
Disorder lost_events(const Trace& trace) {
  Disorder disorder;
  Tellers tellers;
  for (const Event& event : trace.events) {
    Teller& teller = tellers[event.pid];
    teller.numbers.insert(event.seq);
    if (teller.first == nullptr) teller.first = &event;
  }
  for (const auto& [pid, teller] : tellers) {
    std::uint64_t expected = went_on_after_fork(tellers, pid) ? *teller.numbers.begin() : 0;
    for (const std::uint64_t number : teller.numbers) {
      if (number != expected)
        disorder.note("seq " + std::to_string(expected) + " of " + process_text(*teller.first));
      expected = number + 1;
    }
  }
  return disorder;
}

/// Entries that are told twice for one moment, and not alike. A run has one state as built and one
/// as restored, whatever step they are told under.
Disorder contradictions(const Trace& trace) {
  Disorder disorder;
  using Place = std::tuple<StateMoment, std::uint64_t, std::string, std::string>;
  std::map<Place, std::pair<Digest, const Event*>> told;
  for (const Event& event : trace.events) {
    const auto* state = std::get_if<StateEvent>(&event.what);
    if (state == nullptr || event.role != "trainer") continue;
    for (const auto& [label, component] : state->components)
      for (const StateEntry& entry : component.entries) {
        const std::uint64_t step = state->at == StateMoment::kSave ? state->step : 0;
        const auto [before, is_first] =
            told.try_emplace(Place{state->at, step, label, entry.path}, entry.digest, &event);
        if (!is_first && before->second.first != entry.digest)
          disorder.note(label + " entry " + entry.path + ": " + process_text(event) + " has " +
                        short_digest(entry.digest) + ", " + process_text(*before->second.second) +
                        " has " + short_digest(before->second.first));
      }
  }
  return disorder;
}

std::size_t world_of(const RunRecord& run) {
  std::size_t world = 0;
  for (const Event& event : run.trace.events)
    if (event.role == "trainer") world = std::max<std::size_t>(world, event.world);
  return world;
}

struct NamedRun {
  const char* name;
  const RunRecord* run;
};

std::vector<NamedRun> all_runs(const Observations& seen) {
  std::vector<NamedRun> runs = {{"reference", &seen.reference}, {"interrupted", &seen.interrupted}};
  if (seen.resumed) runs.push_back({"resumed", &*seen.resumed});
  for (const auto* evaluation : {&seen.fresh_eval, &seen.reference_eval, &seen.resumed_eval})
    if (*evaluation) runs.push_back({"evaluation", &**evaluation});
  return runs;
}

/// A sentence on each kind of disorder that was found, and the first of each as evidence.
void add(Finding& finding, const NamedRun& one, const Disorder& disorder, const char* singular,
         const char* plural, const char* consequence) {
  if (disorder.count == 0) return;
  finding.status = Status::kInconclusive;
  if (!finding.message.empty()) finding.message += "; ";
  finding.message += std::string(one.name) +
                     " run: " + count_text(disorder.count, singular, plural) + ", " + consequence;
  finding.evidence.push_back({one.name, disorder.first});
}

void look_at(Finding& finding, const NamedRun& one) {
  const Trace& trace = one.run->trace;
  Disorder garbled;
  for (const GarbledLine& line : trace.garbled)
    garbled.note(line.file + ": line " + std::to_string(line.line) + ": " + line.reason);
  add(finding, one, garbled, "line is no event", "lines are no events",
      "so what the trainers said is incomplete");
  add(finding, one, steps_out_of_order(trace), "step is told out of order",
      "steps are told out of order", "so which figures count is open");
  add(finding, one, restarts(trace), "time another process went on as the same rank",
      "times another process went on as the same rank", "so it restarted by itself");
  add(finding, one, lost_events(trace), "event is missing", "runs of events are missing",
      "so what the trainers said is incomplete");
  add(finding, one, contradictions(trace), "entry is told twice and not alike",
      "entries are told twice and not alike", "so which state it had is open");
}

}  // namespace

void judge_trace(const Case& subject, Judgement& judgement) {
  Finding finding{.check = "process.trace", .subject = "events", .message = {}};
  std::size_t events = 0;
  for (const NamedRun& one : all_runs(subject.seen)) {
    events += one.run->trace.events.size();
    look_at(finding, one);
  }
  if (!subject.miscount.empty()) {
    finding.status = Status::kInconclusive;
    finding.message += (finding.message.empty() ? "" : "; ") + subject.miscount;
  }
  const std::size_t reference = world_of(subject.seen.reference);
  const std::size_t resumed = subject.seen.resumed ? world_of(*subject.seen.resumed) : 0;
  if (reference != resumed && reference > 0 && resumed > 0) {
    finding.status = Status::kInconclusive;
    finding.message += (finding.message.empty() ? "" : "; ") + std::string("the reference has ") +
                       count_text(reference, "rank") + " and the resumed run " +
                       count_text(resumed, "rank") + ", so they are not one run";
  }
  if (finding.status == Status::kPass && events == 0) {
    finding.status = Status::kNotObserved;
    finding.message = "the trainers wrote no events";
  } else if (finding.status == Status::kPass) {
    finding.message = count_text(events, "event") + " of the trainers could be read";
  }
  judgement.findings.push_back(std::move(finding));
}

}  // namespace ckptverify::judging
