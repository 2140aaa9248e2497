// Every rank must come back, not the lead alone: where each of the others began, what it drew first
// and its steps, by the same rules as the lead's. A rank that fits says so in one line with the
// others; one that does not is named.
#include <algorithm>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

std::string rank_text(std::uint32_t rank) {
  return "rank " + std::to_string(rank);
}

bool is_bad(const Finding& finding) {
  return finding.status == Status::kFail || finding.status == Status::kInconclusive;
}

/// What the rank tells of a step.
bool tells(const StepEvent& event, std::string_view metric) {
  if (metric == "lr") return !event.lr.empty();
  if (metric == "scale") return event.scale.has_value();
  if (metric == "loss") return event.loss.has_value();
  if (metric == "grad_norm") return event.grad_norm.has_value();
  if (metric == "batch") return event.batch.has_value();
  return metric == "rng" && !event.rng.empty();
}

/// What it told of a step in the reference and not of the same step after the restore.
std::vector<Finding> no_longer_told(const Case& own) {
  std::vector<Finding> findings;
  for (const char* metric : {"lr", "scale", "loss", "grad_norm", "batch", "rng"})
    for (const auto& [step, expected] : own.reference.steps) {
      // The last step of another rank may be under way when the lead's save is reached.
      if (step <= own.save_step() || step >= own.final_step()) continue;
      if (!tells(*expected, metric)) continue;
      const StepEvent* found = own.resumed.step(step);
      if (found != nullptr && tells(*found, metric)) continue;
      findings.push_back({.check = std::string("trajectory.") + metric,
                          .status = Status::kInconclusive,
                          .message = std::string(metric) + " of " + step_text(step) +
                                     " was told in the reference run and not in the resumed run"});
      break;
    }
  return findings;
}

/// What is wrong with a rank whose steps are all there is to see of it.
std::vector<Finding> findings_of(const Case& own, const Judgement& before) {
  Judgement judgement = before;  // its causes explain this rank's findings too
  judge_start(own, judgement);
  judge_first_step(own, judgement);
  judge_trajectory(own, judgement);
  std::vector<Finding> bad;
  for (std::size_t i = before.findings.size(); i < judgement.findings.size(); ++i)
    if (is_bad(judgement.findings[i])) bad.push_back(std::move(judgement.findings[i]));
  return bad;
}

/// A source that is where the lead's is and should not be: one rank's state on all of them.
bool has_source_of_lead(const Case& lead, const Case& own, const std::string& source) {
  const auto digest = [&source](const StepEvent* step) -> const Digest* {
    const auto found =
        step == nullptr ? std::map<std::string, Digest>::const_iterator() : step->rng.find(source);
    return step == nullptr || found == step->rng.end() ? nullptr : &found->second;
  };
  const std::uint64_t next = lead.next_step();
  const Digest* expected_of_lead = digest(lead.reference.step(next));
  const Digest* expected = digest(own.reference.step(next));
  const Digest* found_of_lead = digest(lead.resumed.first());
  const Digest* found = digest(own.resumed.first());
  return expected_of_lead != nullptr && expected != nullptr && found_of_lead != nullptr &&
         found != nullptr && *expected_of_lead != *expected && *found_of_lead == *found;
}

/// The checkpoint's step is right where the lead restored it: a rank that begins at another one
/// read another state, and all that follows is its consequence.
void explain_start(const Case& lead, const Case& own, Finding& finding) {
  if (finding.status != Status::kFail || lead.start != Start::kRight) return;
  if (!from_elsewhere(own.start) && own.start != Start::kUnclear) return;
  finding.cause = cause(CauseKind::kWrongStart);
  std::erase_if(finding.evidence, [](const Evidence& one) { return one.name == "one of"; });
}

void explain_sources(const Case& lead, const Case& own, Finding& finding) {
  constexpr std::string_view kGroup = "rng.";
  if (finding.status != Status::kFail || !finding.check.starts_with(kGroup)) return;
  if (has_source_of_lead(lead, own, finding.check.substr(kGroup.size())))
    finding.cause = cause(CauseKind::kRngRank);
}

/// A rank that trained in the reference and of which nothing is heard after the restore.
std::optional<Finding> silent(const Case& own, std::uint32_t rank) {
  if (own.reference.steps.empty() || own.resumed.first_step) return std::nullopt;
  return Finding{.check = "restore.ranks",
                 .status = Status::kInconclusive,
                 .subject = rank_text(rank),
                 .message = rank_text(rank) +
                            " told its steps in the reference run and none in the resumed run"};
}

/// One finding a check: the first rank's, with the others that are like it.
class Collected {
 public:
  void add(Finding finding, const std::string& rank) {
    const auto known = std::find_if(all_.begin(), all_.end(), [&](const Entry& entry) {
      return entry.finding.check == finding.check;
    });
    if (known != all_.end()) {
      known->others += (known->others.empty() ? "" : ", ") + rank;
      return;
    }
    finding.subject = rank;
    if (!finding.message.starts_with(rank)) finding.message = rank + ": " + finding.message;
    all_.push_back({std::move(finding), {}});
  }
  bool empty() const { return all_.empty(); }
  void move_to(std::vector<Finding>& findings) {
    for (Entry& entry : all_) {
      if (!entry.others.empty()) entry.finding.evidence.push_back({"likewise", entry.others});
      findings.push_back(std::move(entry.finding));
    }
  }

 private:
  struct Entry {
    Finding finding;
    std::string others;
  };
  std::vector<Entry> all_;
};

}  // namespace

void judge_ranks(const Case& subject, Judgement& judgement) {
  const std::vector<std::uint32_t> ranks = ranks_of(subject.seen);
  if (subject.resumed.record == nullptr || ranks.size() < 2 || !subject.miscount.empty()) return;
  const Judgement before = judgement;
  Collected bad;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const Case own = seen_by(ranks[i], subject);
    for (Finding& finding : findings_of(own, before)) {
      explain_sources(subject, own, finding);
      explain_start(subject, own, finding);
      bad.add(std::move(finding), rank_text(ranks[i]));
    }
    if (own.resumed.first_step)
      for (Finding& finding : no_longer_told(own)) bad.add(std::move(finding), rank_text(ranks[i]));
    if (auto finding = silent(own, ranks[i])) bad.add(*std::move(finding), rank_text(ranks[i]));
  }
  if (bad.empty())
    judgement.findings.push_back(
        {.check = "restore.ranks",
         .subject = "resumed run",
         .message = count_text(ranks.size() - 1, "other rank") +
                    " began where the reference went on, and nothing that they tell parts from "
                    "it"});
  bad.move_to(judgement.findings);
}

}  // namespace ckptverify::judging
