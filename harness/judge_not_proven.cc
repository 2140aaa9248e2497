// What was not shown, for people: what could not be told first, then what was not observed, checks
// of one reason in one sentence.
#include <algorithm>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

/// What only events can show.
bool needs_events(const Finding& finding) {
  constexpr std::string_view kGroups[] = {"process.trace", "identity.",   "restore.",       "data.",
                                          "rng.",          "trajectory.", "resave.identity"};
  return std::any_of(std::begin(kGroups), std::end(kGroups),
                     [&](std::string_view group) { return finding.check.starts_with(group); });
}

/// The message without the words that differ from check to check.
std::string reason_of(const Finding& finding) {
  std::string text = finding.message;
  const std::string component = "the " + finding.subject + " state";
  if (const std::size_t at = text.find(component); at != std::string::npos)
    text.replace(at, component.size(), "the state");
  const std::string metric = finding.check.substr(finding.check.find('.') + 1) + " was not seen";
  if (text.starts_with(metric)) text.replace(0, metric.size(), "not seen");
  return text;
}

struct Group {
  std::string checks = {};
  std::string reason = {};   // shared
  std::string message = {};  // of the only check
  std::size_t count = 0;
};

}  // namespace

std::vector<std::string> not_proven_sentences(const std::vector<Finding>& findings) {
  std::vector<std::string> sentences;
  for (const Finding& finding : findings) {
    if (finding.status != Status::kInconclusive) continue;
    const auto first = finding.check == "verdict.evidence" ? sentences.begin() : sentences.end();
    sentences.insert(first, finding.check + ": " + finding.message);
  }
  const bool no_events = tells_nothing(findings);
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    if (finding.status != Status::kNotObserved) continue;
    const std::string reason = no_events && needs_events(finding)
                                   ? "the trainers wrote no events, so nothing inside them was "
                                     "seen; docs/trainer-contract.md says how they tell it"
                                   : reason_of(finding);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& each) { return each.reason == reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{.reason = reason});
    group->checks += (group->count == 0 ? "" : ", ") + finding.check;
    group->message = finding.message;
    ++group->count;
  }
  for (const Group& group : groups)
    sentences.push_back(group.checks + ": " + (group.count == 1 ? group.message : group.reason));
  return sentences;
}

}  // namespace ckptverify::judging
