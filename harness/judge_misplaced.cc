// Entries that a trainer tells in one component and that lie on disk in another. What an entry of a
// checkpoint is for is the reader's guess by its name, so nobody's fault follows from it: such
// entries are taken out of every comparison and told.
#include <algorithm>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

using Place = std::pair<std::string, std::string>;  // label, path

/// One number equals many others: only its name says which it is.
bool is_single(const StateItem& item) {
  return !item.is_tensor || item.text.ends_with("[]") || item.text.ends_with("[1]");
}

std::set<Digest> digests_of(const Items* items) {
  std::set<Digest> digests;
  if (items == nullptr) return digests;
  for (const auto& [path, item] : *items) digests.insert(item.digest);
  return digests;
}

/// Entries on disk that the trainer does not count among their component, by digest and by name.
struct Unclaimed {
  std::multimap<Digest, Place> by_digest;
  std::multimap<std::string, Place> by_name;
};

Unclaimed unclaimed_entries(const StateDigests& told, const StateDigests& disk) {
  Unclaimed unclaimed;
  for (const auto& [label, items] : disk) {
    const Items* claims = find_component(told, label);
    const std::set<Digest> claimed = digests_of(claims);
    const bool spoken_of = claims != nullptr || component_of_label(label) == Component::kOther;
    for (const auto& [path, item] : items) {
      if (claimed.contains(item.digest) || (claims != nullptr && claims->contains(path))) continue;
      unclaimed.by_digest.emplace(item.digest, Place(label, path));
      if (spoken_of) unclaimed.by_name.emplace(path, Place(label, path));
    }
  }
  return unclaimed;
}

std::optional<Place> place_of(const Unclaimed& unclaimed, const std::string& label,
                              const std::string& path, const StateItem& item) {
  for (const std::string& name : {path, label + "." + path}) {
    const auto named = unclaimed.by_name.find(name);
    if (named != unclaimed.by_name.end() && named->second.first != label) return named->second;
  }
  const auto [begin, end] = unclaimed.by_digest.equal_range(item.digest);
  for (auto candidate = begin; candidate != end; ++candidate) {
    const auto& [other_label, other_path] = candidate->second;
    if (other_label == label) continue;
    if (!is_single(item) || last_key(other_path) == last_key(path)) return candidate->second;
  }
  return std::nullopt;
}

void take_out(StateDigests& state, const std::string& label, const std::string& path) {
  const auto component = state.find(label);
  if (component == state.end() || component->second.erase(path) == 0) return;
  if (component->second.empty()) state.erase(component);
}

/// The path as a regular expression for itself.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char character : path) {
    if (std::string_view("\\^$.|?*+()[]{}").find(character) != std::string_view::npos) text += '\\';
    text += character;
  }
  return text;
}

}  // namespace

std::vector<Misplaced> find_misplaced(const StateDigests& told, const StateDigests& disk) {
  std::vector<Misplaced> misplaced;
  const Unclaimed unclaimed = unclaimed_entries(told, disk);
  if (unclaimed.by_digest.empty()) return misplaced;
  for (const auto& [label, items] : told) {
    const Items* own = find_component(disk, label);
    const std::set<Digest> at_home = digests_of(own);
    for (const auto& [path, item] : items) {
      if (at_home.contains(item.digest) || (own != nullptr && own->contains(path))) continue;
      const auto place = place_of(unclaimed, label, path, item);
      if (!place) continue;
      misplaced.push_back({.told_label = label,
                           .told_path = path,
                           .disk_label = place->first,
                           .disk_path = place->second,
                           .root = disk.at(place->first).at(place->second).root});
    }
  }
  return misplaced;
}

void take_out_told(StateDigests& told, const std::vector<Misplaced>& misplaced) {
  for (const Misplaced& entry : misplaced) take_out(told, entry.told_label, entry.told_path);
}

void take_out_of_disk(StateDigests& disk, const std::vector<Misplaced>& misplaced) {
  for (const Misplaced& entry : misplaced) take_out(disk, entry.disk_label, entry.disk_path);
}

std::vector<std::string> misplaced_labels(const std::vector<Misplaced>& misplaced) {
  std::set<std::string> labels;
  for (const Misplaced& entry : misplaced) labels.insert(entry.told_label);
  return {labels.begin(), labels.end()};
}

std::string misplaced_text(const std::vector<Misplaced>& misplaced, const std::string& label) {
  constexpr std::size_t kShown = 3;  // the first few say it
  const std::string component(component_name(component_of_label(label)));
  std::vector<std::string> rules;
  std::string elsewhere;
  for (const Misplaced& entry : misplaced) {
    if (entry.told_label != label) continue;
    if (elsewhere.empty()) elsewhere = entry.disk_label;
    std::string rule = "'^";
    rule += escaped(entry.root + entry.disk_path) + "$=" + component + "'";
    rules.push_back(std::move(rule));
  }
  std::string text = count_text(rules.size(), "entry") + " of the " + label +
                     " state, as the trainer tells it, " + (rules.size() == 1 ? "lies" : "lie") +
                     " on disk in what was taken for the " + elsewhere +
                     " state, and could not be compared; say in the plan what is what: "
                     "[checkpoints] components = [";
  for (std::size_t i = 0; i < std::min(kShown, rules.size()); ++i)
    text += (i == 0 ? "" : ", ") + rules[i];
  return text + (rules.size() > kShown ? ", ...]" : "]");
}

}  // namespace ckptverify::judging
