// The judgement: all groups of checks in order of evidence, then what only their sum shows. Failing
// checks without evidence of their own are consequences of the first cause, a pass needs its
// minimum of evidence, and waivers come last.
#include "harness/judge.h"

#include <algorithm>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify {
namespace judging {
namespace {

bool is_group(const Finding& finding, std::string_view group) {
  return finding.check.size() > group.size() && finding.check.starts_with(group) &&
         finding.check[group.size()] == '.';
}

/// What a wrong step count explains: everything that is computed from the count.
bool follows_count(const Finding& finding) {
  constexpr std::string_view kGroups[] = {"trajectory", "final", "eval", "data", "rng", "restore"};
  const bool in_group =
      std::any_of(std::begin(kGroups), std::end(kGroups),
                  [&](std::string_view group) { return is_group(finding, group); });
  return in_group || finding.check == "identity.scheduler" || finding.check == "identity.step" ||
         finding.check == "identity.data_cursor";
}

Component component_of(const Finding& finding) {
  const Component component = component_of_label(finding.subject);
  if (component != Component::kOther) return component;
  return is_group(finding, "trajectory") || is_group(finding, "eval") ? Component::kModel
                                                                      : Component::kOther;
}

/// The state that nothing exposes: what parts without a cause may part because of it. What is right
/// in the end came back.
std::string unseen_state(const std::vector<Finding>& findings) {
  std::set<std::string> right;
  for (const Finding& finding : findings)
    if (is_group(finding, "final") && finding.status == Status::kPass)
      right.insert(finding.subject);
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.status != Status::kNotObserved || right.contains(finding.subject)) continue;
    if (!is_group(finding, "identity") && !is_group(finding, "data") && !is_group(finding, "rng"))
      continue;
    text += (text.empty() ? "" : ", ") + finding.check;
  }
  return text;
}

void attribute(const Case& subject, std::vector<Finding>& findings) {
  std::optional<Cause> first;
  for (Finding& finding : findings) {
    if (finding.status != Status::kFail) continue;
    if (!is_group(finding, "static")) {
      if (from_elsewhere(subject.start)) finding.cause = cause(CauseKind::kWrongStart);
      if (subject.start == Start::kWrongCount && follows_count(finding))
        finding.cause = cause(CauseKind::kStepCount);
    }
    if (!first && finding.cause && finding.cause->kind != CauseKind::kUnknown)
      first = finding.cause;
  }
  const std::string unseen = first ? "" : unseen_state(findings);
  for (Finding& finding : findings) {
    if (finding.status != Status::kFail || finding.cause) continue;
    finding.cause = first ? *first : unknown(component_of(finding));
    if (!unseen.empty() && !is_group(finding, "process"))
      finding.evidence.push_back({"not observed, so left to suspect", unseen});
  }
}

/// A run that wrote its checkpoint of step N again and ended elsewhere began at another step, or
/// saves where it starts: the one thing that files tell of where it began.
void blame_second_save(const Case& subject, std::vector<Finding>& findings) {
  const bool parted = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return is_group(finding, "final") && finding.status == Status::kFail;
  });
  if (!parted || !subject.seen.resumed_saved_again) return;
  for (Finding& finding : findings) {
    if (finding.check != "process.restore" || finding.status != Status::kInconclusive) continue;
    finding.status = Status::kFail;
    finding.cause = unknown(Component::kStep);
    finding.evidence.push_back({"one of", "wrong-start, step-count"});
  }
}

/// What the reader misses by its guess at names, and the trainer tells of entries that are there.
void excuse_misplaced(const Case& subject, std::vector<Finding>& findings) {
  for (const std::string& label : misplaced_labels(subject.misplaced))
    for (Finding& finding : findings) {
      if (finding.check != "static.components" || finding.subject != label) continue;
      if (finding.status != Status::kFail) continue;
      finding.status = Status::kInconclusive;
      finding.message += "; " + misplaced_text(subject.misplaced, label);
      finding.cause.reset();
    }
}

bool holds(Status status) {
  return status == Status::kPass || status == Status::kWarn || status == Status::kWaived ||
         status == Status::kNotApplicable || status == Status::kSkipped;
}

bool group_holds(const std::vector<Finding>& findings, std::string_view group) {
  bool any = false;
  for (const Finding& finding : findings) {
    if (!is_group(finding, group)) continue;
    if (!holds(finding.status)) return false;
    any = any || finding.status == Status::kPass;
  }
  return any;
}

/// Passed itself: a waiver does not make a kill or a restore happen.
bool check_passed(const std::vector<Finding>& findings, std::string_view check) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.check == check && finding.status == Status::kPass;
  });
}

bool static_holds(const std::vector<Finding>& findings) {
  bool any = false;
  for (const Finding& finding : findings) {
    if (!is_group(finding, "static")) continue;
    if (finding.status == Status::kFail || finding.status == Status::kInconclusive) return false;
    any = any || finding.status == Status::kPass;
  }
  return any;
}

/// M equal steps: the losses of all of them, and nothing else that was seen parted.
bool steps_hold(const std::vector<Finding>& findings) {
  return check_passed(findings, "trajectory.loss") &&
         std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
           return is_group(finding, "trajectory") &&
                  (finding.status == Status::kFail || finding.status == Status::kInconclusive);
         });
}

/// The weights themselves, and their optimizer where there is one: a waiver of these, or a
/// checkpoint that holds neither, proves nothing.
bool core_holds(const std::vector<Finding>& findings, std::string_view group) {
  const std::string prefix = std::string(group) + ".";
  return check_passed(findings, prefix + "model") &&
         std::none_of(findings.begin(), findings.end(), [&](const Finding& finding) {
           return finding.check == prefix + "optimizer" && finding.status == Status::kWaived;
         });
}

bool all_proven(const std::vector<Finding>& findings, std::string_view group) {
  return group_holds(findings, group) && core_holds(findings, group);
}

/// Within the noise of two runs a lost state may hide.
bool leans_on_noise(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return is_group(finding, "final") &&
           std::any_of(finding.evidence.begin(), finding.evidence.end(),
                       [](const Evidence& one) { return one.value == kWithinNoise; });
  });
}

/// What a pass needs and is missing; empty when it may pass.
std::vector<std::string> missing_evidence(const std::vector<Finding>& findings) {
  std::vector<std::string> missing;
  if (!check_passed(findings, "process.kill")) missing.push_back("a confirmed kill");
  if (!static_holds(findings)) missing.push_back("static checks of the checkpoint that passed");
  if (!check_passed(findings, "restore.step")) missing.push_back("a restore at the saved step");
  const bool same_state = all_proven(findings, "identity") && steps_hold(findings);
  if (!same_state && (!all_proven(findings, "final") || leans_on_noise(findings)))
    missing.push_back(
        "either live = disk = restored for every component and all steps equal, or equal final "
        "checkpoints");
  return missing;
}

void require_evidence(std::vector<Finding>& findings) {
  if (verdict_of(findings) != Verdict::kPass) return;
  const std::vector<std::string> missing = missing_evidence(findings);
  if (missing.empty()) return;
  Finding finding{.check = "verdict.evidence",
                  .status = Status::kInconclusive,
                  .subject = "verdict",
                  .message =
                      "nothing failed, and a pass is not proven: "
                      "missing is " +
                      missing.front()};
  for (std::size_t i = 1; i < missing.size(); ++i) finding.message += "; " + missing[i];
  if (tells_nothing(findings))
    finding.message += "; only a trainer that tells events can show it (docs/trainer-contract.md)";
  if (steps_hold(findings))
    finding.evidence.push_back({"equal losses", "they alone do not prove that the state is whole"});
  findings.push_back(std::move(finding));
}

void waive(const Plan& plan, std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (finding.status != Status::kFail && finding.status != Status::kInconclusive) continue;
    const auto waiver =
        std::find_if(plan.waivers.begin(), plan.waivers.end(),
                     [&](const Waiver& candidate) { return candidate.check == finding.check; });
    if (waiver == plan.waivers.end()) continue;
    finding.evidence.push_back({"waived", waiver->reason});
    finding.evidence.push_back({"would be", std::string(status_name(finding.status)) +
                                                (finding.cause ? ", " + finding.cause->id() : "")});
    finding.status = Status::kWaived;
    finding.cause.reset();
  }
}

/// A waiver that waived nothing is a typing mistake, or no longer needed.
void list_idle_waivers(const Plan& plan, std::vector<Finding>& findings) {
  const std::size_t count = findings.size();
  for (const Waiver& waiver : plan.waivers) {
    const auto found =
        std::find_if(findings.begin(), findings.begin() + static_cast<std::ptrdiff_t>(count),
                     [&](const Finding& finding) { return finding.check == waiver.check; });
    const bool exists = found != findings.begin() + static_cast<std::ptrdiff_t>(count);
    if (exists && found->status == Status::kWaived) continue;
    findings.push_back(
        {.check = "plan.waiver",
         .status = Status::kWarn,
         .subject = waiver.check,
         .message = "the plan waives " + waiver.check + ", and " +
                    (exists ? "it is " + std::string(status_name(found->status)) + " by itself"
                            : "no check of that name was made"),
         .evidence = {{"its reason", waiver.reason}}});
  }
}

/// In what the checkpoints at N + M are equal bit for bit, and in what not; empty where in nothing.
std::string final_sentence(const Case& subject, const std::vector<Finding>& findings) {
  std::string equal;
  std::string other;
  for (const Finding& finding : findings) {
    if (!is_group(finding, "final") || finding.status == Status::kNotObserved) continue;
    const bool bit_for_bit = finding.status == Status::kPass && finding.evidence.empty();
    std::string& list = bit_for_bit ? equal : other;
    if (!list.empty()) list += ", ";
    list += finding.subject;
  }
  if (equal.empty()) return {};
  const std::string sentence = "the checkpoints at step " + std::to_string(subject.final_step()) +
                               " are equal entry by entry";
  return other.empty() ? sentence : sentence + " in " + equal + "; not in " + other;
}

/// State that most runs have and that neither the checkpoint nor the trainer shows; empty if none.
std::string unseen_components(const Case& subject) {
  std::string absent;
  for (const char* name : {"optimizer", "rng", "data_cursor"}) {
    const auto holds = [name](const StateDigests* state) {
      return state != nullptr &&
             std::any_of(state->begin(), state->end(), [name](const auto& component) {
               return component_of_label(component.first) == component_named(name) &&
                      !component.second.empty();
             });
    };
    if (subject.disk == nullptr || holds(subject.disk) || holds(&subject.live)) continue;
    absent += (absent.empty() ? "" : ", ") + std::string(name);
  }
  if (absent.empty()) return {};
  return "the checkpoint has no state of: " + absent +
         "; what the trainer keeps of it elsewhere (a cache, memory, its own directory) was not "
         "moved away, and is lost with the machine";
}

void summarise(const Case& subject, Judgement& judgement) {
  std::vector<std::string> proven;
  const std::vector<Finding>& findings = judgement.findings;
  const std::string saved = std::to_string(subject.save_step());
  for (const Finding& finding : findings)
    if (finding.check == "process.kill" && finding.status == Status::kPass)
      proven.push_back(finding.message);
  if (static_holds(findings))
    proven.push_back("the checkpoint of step " + saved +
                     " is whole by its bytes alone, read from a moved copy without its writer");
  proven.insert(proven.end(), judgement.proven.begin(), judgement.proven.end());
  for (const char* check : {"restore.step", "data.next_batch", "eval.saved"})
    for (const Finding& finding : findings)
      if (finding.check == check && finding.status == Status::kPass)
        proven.push_back(finding.message);
  if (check_passed(findings, "trajectory.loss") && steps_hold(findings))
    proven.push_back("the resumed run takes the reference's steps " +
                     std::to_string(subject.save_step() + 1) + " to " +
                     std::to_string(subject.final_step()));
  std::string at_end = final_sentence(subject, findings);
  if (!at_end.empty()) proven.push_back(std::move(at_end));
  judgement.proven = std::move(proven);
  judgement.not_proven = not_proven_sentences(findings);
  if (std::string unseen = unseen_components(subject); !unseen.empty())
    judgement.not_proven.push_back(std::move(unseen));
}

}  // namespace
}  // namespace judging

Judgement judge(const Plan& plan, const Observations& observations) {
  const judging::Case subject = judging::lay_out(plan, observations);
  Judgement judgement;
  judging::judge_process(subject, judgement);
  judgement.findings.insert(judgement.findings.end(), observations.static_findings.begin(),
                            observations.static_findings.end());
  judging::excuse_misplaced(subject, judgement.findings);
  judging::judge_identity(subject, judgement);
  judging::judge_start(subject, judgement);
  judging::judge_first_step(subject, judgement);
  judging::judge_trajectory(subject, judgement);
  judging::judge_ranks(subject, judgement);
  judging::judge_evaluation(subject, judgement);
  judging::judge_final(subject, judgement);
  judging::judge_resave(subject, judgement);
  judging::judge_noise(subject, judgement);
  judging::blame_second_save(subject, judgement.findings);
  judging::attribute(subject, judgement.findings);
  judging::waive(plan, judgement.findings);
  judging::require_evidence(judgement.findings);
  judging::list_idle_waivers(plan, judgement.findings);
  judging::summarise(subject, judgement);
  judgement.curves = judging::draw_curves(subject);
  return judgement;
}

}  // namespace ckptverify
