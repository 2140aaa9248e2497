// Presence is counted from the entries; what could not be read may hold what seems to be absent,
// and then nothing is claimed.
#include "src/component_findings.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "ckptverify/count_text.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.components";

Cause named(CauseKind kind) {
  return {.kind = kind, .component = {}};
}

/// What a component's loss is called.
Cause loss_of(Component component) {
  switch (component) {
    case Component::kModel:
      return named(CauseKind::kValues);
    case Component::kOptimizer:
      return named(CauseKind::kOptLost);
    case Component::kScheduler:
      return named(CauseKind::kSchedLost);
    case Component::kScaler:
      return named(CauseKind::kScaler);
    case Component::kStep:
      return named(CauseKind::kStepCount);
    case Component::kRng:
      return named(CauseKind::kRngLost);
    case Component::kDataCursor:
      return named(CauseKind::kDataCursor);
    case Component::kEma:
      return named(CauseKind::kEma);
    case Component::kConfig:
    case Component::kOther:
      break;
  }
  return {.kind = CauseKind::kUnknown, .component = component};
}

struct Presence {
  std::set<std::uint32_t> ranks;       // where each has its own
  std::set<std::string_view> sources;  // of random numbers
  std::map<std::uint32_t, std::set<std::string_view>> rank_sources;
  std::uint64_t entry_count = 0;
  bool empty = true;  // nothing but null, [] and {}
};

bool holds_nothing(const Node& node) {
  const auto* value = std::get_if<Value>(&node);
  return value != nullptr &&
         (std::holds_alternative<Null>(*value) || std::holds_alternative<EmptyList>(*value) ||
          std::holds_alternative<EmptyMap>(*value));
}

struct SourceRow {
  std::string_view word;
  std::string_view source;
};

// In the order in which they are asked: "torch_cuda_manual_seed" is CUDA's, "numpy_random_state"
// NumPy's, and a bare "random_state" Python's.
constexpr std::array kSources = {
    SourceRow{"cuda", "cuda"},
    SourceRow{"xpu", "xpu"},
    SourceRow{"mps", "mps"},
    SourceRow{"npu", "npu"},
    SourceRow{"hpu", "hpu"},
    SourceRow{"tracker", "model parallel"},
    SourceRow{"numpy", "numpy"},
    SourceRow{"np_", "numpy"},
    SourceRow{"dataloader", "data loader"},
    SourceRow{"sampler", "data loader"},
    SourceRow{"cpu", "torch cpu"},
    SourceRow{"torch", "torch cpu"},
    SourceRow{"python", "python"},
    SourceRow{"random_state", "python"},
};

/// Which generator an entry of the rng component belongs to; empty where its name does not say.
std::string_view rng_source(const std::string& path) {
  for (const SourceRow& row : kSources) {
    if (path.find(row.word) != std::string::npos) return row.source;
  }
  return {};
}

std::map<Component, Presence> presences(const Checkpoint& checkpoint) {
  std::map<Component, Presence> found;
  for (const Entry& entry : checkpoint.entries) {
    Presence& presence = found[entry.component];
    ++presence.entry_count;
    presence.empty = presence.empty && holds_nothing(entry.node);
    if (entry.rank) presence.ranks.insert(*entry.rank);
    if (entry.component != Component::kRng || holds_nothing(entry.node)) continue;
    const std::string_view source = rng_source(entry.path);
    if (source.empty()) continue;
    presence.sources.insert(source);
    if (entry.rank) presence.rank_sources[*entry.rank].insert(source);
  }
  return found;
}

/// "0-3, 6": runs of ranks.
std::string ranks_text(const std::set<std::uint32_t>& ranks) {
  std::string text;
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    const std::uint32_t first = *rank;
    std::uint32_t last = first;
    while (++rank != ranks.end() && *rank == last + 1) last = *rank;
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

std::string joined(const std::set<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

std::string presence_text(const Presence& presence) {
  std::string text = presence.empty ? "empty" : count_text(presence.entry_count, "entry");
  if (!presence.sources.empty()) text += " of " + joined(presence.sources);
  if (!presence.ranks.empty()) {
    text += presence.ranks.size() == 1 ? ", rank " : ", ranks ";
    text += ranks_text(presence.ranks);
  }
  return text;
}

/// What could not be read, for which an absent component may be looked for in vain.
std::string unread_part(const Checkpoint& checkpoint) {
  for (const Finding& finding : checkpoint.findings) {
    if (finding.check != "static.container") continue;
    if (finding.status != Status::kFail && finding.status != Status::kInconclusive) continue;
    return finding.subject.empty() ? finding.message : finding.subject;
  }
  return checkpoint.uninterpreted.empty() ? "" : checkpoint.uninterpreted.front();
}

/// A required component that is absent or empty; nothing if it is there. A scaler's state is empty
/// when it is off.
std::optional<Finding> requirement(Component component, const Presence* presence,
                                   const std::string& unread) {
  if (presence != nullptr && !presence->empty) return std::nullopt;
  const std::string name(component_name(component));
  if (presence != nullptr && component == Component::kScaler) {
    return Finding{.check = std::string(kCheck),
                   .status = Status::kNotApplicable,
                   .subject = name,
                   .message = "scaler: its state is empty, as that of a scaler that is off"};
  }
  const std::string found = presence == nullptr ? "no entry" : "an empty state";
  if (presence == nullptr && !unread.empty()) {
    return Finding{
        .check = std::string(kCheck),
        .status = Status::kInconclusive,
        .subject = name,
        .message = name + ": required, and not in what could be read; it may be in " + unread,
        .evidence = {{"found", found}, {"unread", unread}}};
  }
  return Finding{.check = std::string(kCheck),
                 .status = Status::kFail,
                 .cause = loss_of(component),
                 .subject = name,
                 .message = "the required component " + name + " is " +
                            (presence == nullptr ? "absent" : "empty") + "; found " + found +
                            ", expected at least one entry",
                 .evidence = {{"found", found}}};
}

Finding warning(Component component, const std::string& message) {
  const std::string name(component_name(component));
  return {.check = std::string(kCheck),
          .status = Status::kWarn,
          .subject = name,
          .message = name + ": " + message};
}

/// Ranks that are missing in the middle, and generators that only some ranks have.
void add_rank_warnings(Component component, const Presence& presence,
                       std::vector<Finding>& findings) {
  if (presence.ranks.empty()) return;
  const std::uint64_t expected = std::uint64_t{*presence.ranks.rbegin()} + 1;
  if (presence.ranks.size() < expected) {
    findings.push_back(warning(component, "some ranks have no state; found ranks " +
                                              ranks_text(presence.ranks) + ", expected 0-" +
                                              std::to_string(expected - 1)));
  }
  std::map<std::string_view, std::set<std::uint32_t>> having;
  for (const auto& [rank, sources] : presence.rank_sources) {
    for (const std::string_view source : sources) having[source].insert(rank);
  }
  for (const auto& [source, ranks] : having) {
    if (ranks.size() == presence.rank_sources.size()) continue;
    findings.push_back(warning(
        component, "only some ranks have the state of " + std::string(source) + "; found ranks " +
                       ranks_text(ranks) + " of " + ranks_text(presence.ranks)));
  }
}

Finding summary_of(const std::map<Component, Presence>& found, const std::string& unread) {
  Finding summary{.check = std::string(kCheck), .message = {}};
  std::string present;
  std::string empty;
  for (const Component component : components()) {
    const std::string name(component_name(component));
    const auto place = found.find(component);
    if (place == found.end()) {
      summary.evidence.push_back({name, unread.empty() ? "absent" : "not in what could be read"});
      continue;
    }
    summary.evidence.push_back({name, presence_text(place->second)});
    std::string& list = place->second.empty ? empty : present;
    list += (list.empty() ? "" : ", ") + name;
    if (component == Component::kRng && !place->second.sources.empty()) {
      list += " (" + joined(place->second.sources) + ")";
    }
  }
  summary.message = present.empty() ? "no component is present" : "present: " + present;
  if (found.empty() && !unread.empty()) {
    summary.status = Status::kNotObserved;
    summary.message = "nothing could be read in which to look for components";
  }
  if (!empty.empty()) summary.message += "; empty: " + empty;
  return summary;
}

}  // namespace

std::vector<Finding> component_findings(const Checkpoint& checkpoint,
                                        const std::vector<Component>& required) {
  const auto found = presences(checkpoint);
  const auto presence_of = [&](Component component) {
    const auto place = found.find(component);
    return place == found.end() ? nullptr : &place->second;
  };
  const std::string unread = unread_part(checkpoint);
  std::vector<Finding> findings;
  for (const Component component : required) {
    auto finding = requirement(component, presence_of(component), unread);
    if (finding) findings.push_back(std::move(*finding));
  }
  // Settings come from a command line as well as from a checkpoint; random state does not.
  const bool rng_required =
      std::find(required.begin(), required.end(), Component::kRng) != required.end();
  if (presence_of(Component::kOptimizer) != nullptr && presence_of(Component::kRng) == nullptr &&
      !rng_required && unread.empty()) {
    findings.push_back(
        warning(Component::kRng,
                "not in the checkpoint; a run that draws random numbers (data order, "
                "dropout) does not come back as the same run"));
  }
  for (const auto& [component, presence] : found) {
    add_rank_warnings(component, presence, findings);
  }
  findings.push_back(summary_of(found, unread));
  return findings;
}

}  // namespace ckptverify
