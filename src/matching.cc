// Paths are renamed, sorted and merged; what is left over on both sides is tried once more by what
// its names mean.
#include "src/matching.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "ckptverify/count_text.h"
#include "ckptverify/path_pattern.h"
#include "src/matching_names.h"

namespace ckptverify {
namespace {

/// The path rules, compiled once.
class Renaming {
 public:
  static Result<Renaming> compile(const std::vector<PathRule>& rules) {
    Renaming renaming;
    for (const PathRule& rule : rules) {
      CKPTVERIFY_TRY(PathPattern pattern, PathPattern::regex(rule.pattern));
      renaming.rules_.emplace_back(std::move(pattern), rule.replacement);
    }
    return renaming;
  }

  Result<std::string> apply(std::string path) const {
    for (const auto& [pattern, replacement] : rules_) {
      CKPTVERIFY_TRY(path, pattern.replace(path, replacement));
    }
    return path;
  }

 private:
  std::vector<std::pair<PathPattern, std::string>> rules_;
};

std::strong_ordering order(const NamedEntry& a, const NamedEntry& b) {
  const auto by_label = a.label <=> b.label;
  return by_label != 0 ? by_label : a.path <=> b.path;
}

void sort(std::vector<NamedEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const NamedEntry& a, const NamedEntry& b) { return order(a, b) < 0; });
}

Result<std::vector<NamedEntry>> named_entries(const Checkpoint& checkpoint,
                                              const Renaming& renaming) {
  std::vector<NamedEntry> named;
  for (const Entry& entry : checkpoint.entries) {
    CKPTVERIFY_TRY(std::string path, renaming.apply(std::string(relative_path(entry))));
    named.push_back({component_label(entry), std::move(path), &entry});
  }
  return named;
}

/// What only one side has stays in the two lists.
void merge(std::vector<NamedEntry>& first, std::vector<NamedEntry>& second, Matching& matching) {
  std::vector<NamedEntry> only_first;
  std::vector<NamedEntry> only_second;
  auto a = first.begin();
  auto b = second.begin();
  while (a != first.end() && b != second.end()) {
    const auto by_name = order(*a, *b);
    if (by_name < 0) {
      only_first.push_back(std::move(*a++));
    } else if (by_name > 0) {
      only_second.push_back(std::move(*b++));
    } else {
      matching.both.emplace_back((a++)->entry, (b++)->entry);
    }
  }
  std::move(a, first.end(), std::back_inserter(only_first));
  std::move(b, second.end(), std::back_inserter(only_second));
  first = std::move(only_first);
  second = std::move(only_second);
}

/// Names without wrappers, and how many of each kind there are.
std::map<std::string, std::vector<std::size_t>> unwrapped(const std::vector<NamedEntry>& entries) {
  std::map<std::string, std::vector<std::size_t>> names;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    names[entries[i].label + "/" + without_wrappers(entries[i].path)].push_back(i);
  }
  return names;
}

/// Matches what is left over by its names without wrappers, where one is meant on either side.
void match_unwrapped(std::vector<NamedEntry>& first, std::vector<NamedEntry>& second,
                     Matching& matching) {
  if (first.empty() || second.empty()) return;
  const auto others = unwrapped(second);
  std::set<const Entry*> used;
  std::string example;
  for (const auto& [name, indices] : unwrapped(first)) {
    const auto found = others.find(name);
    if (indices.size() != 1 || found == others.end() || found->second.size() != 1) continue;
    const NamedEntry& one = first[indices.front()];
    const NamedEntry& two = second[found->second.front()];
    matching.both.emplace_back(one.entry, two.entry);
    used.insert(one.entry);
    used.insert(two.entry);
    if (example.empty()) example = one.path + " = " + two.path;
  }
  if (used.empty()) return;
  matching.notes.push_back("matched without wrappers' prefixes: " +
                           count_text(used.size() / 2, "entry") + ", such as " + example);
  const auto is_used = [&used](const NamedEntry& named) { return used.contains(named.entry); };
  std::erase_if(first, is_used);
  std::erase_if(second, is_used);
}

/// What is left over on both sides under one whole path.
void match_refiled(std::vector<NamedEntry>& first, std::vector<NamedEntry>& second,
                   Matching& matching) {
  if (first.empty() || second.empty()) return;
  std::map<std::string_view, const Entry*> others;  // the second of one path stays alone
  for (const NamedEntry& named : second) others.emplace(named.entry->path, named.entry);
  std::set<const Entry*> used;
  for (const NamedEntry& named : first) {
    const auto other = others.find(named.entry->path);
    if (other == others.end()) continue;
    matching.refiled.emplace_back(named.entry, other->second);
    used.insert({named.entry, other->second});
    others.erase(other);
  }
  const auto is_used = [&used](const NamedEntry& named) { return used.contains(named.entry); };
  std::erase_if(first, is_used);
  std::erase_if(second, is_used);
}

}  // namespace

Result<Matching> match_entries(const Checkpoint& first, const Checkpoint& second,
                               const std::vector<PathRule>& rules, Names names) {
  CKPTVERIFY_TRY(const Renaming renaming, Renaming::compile(rules));
  CKPTVERIFY_TRY(std::vector<NamedEntry> only_first, named_entries(first, renaming));
  CKPTVERIFY_TRY(std::vector<NamedEntry> only_second, named_entries(second, renaming));
  Matching matching;
  if (names == Names::kByMeaning) {
    const auto count = name_optimizer_state(only_first, only_second, matching.same_parameter);
    if (count > 0) {
      matching.notes.push_back("optimizer state matched by position: " + std::to_string(count) +
                               " parameters, which one side knows by name");
    }
  }
  sort(only_first);
  sort(only_second);
  merge(only_first, only_second, matching);
  if (names == Names::kByMeaning) match_unwrapped(only_first, only_second, matching);
  match_refiled(only_first, only_second, matching);
  for (const NamedEntry& named : only_first) matching.only_first.push_back(named.entry);
  for (const NamedEntry& named : only_second) matching.only_second.push_back(named.entry);
  return matching;
}

}  // namespace ckptverify
