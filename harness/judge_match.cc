// Holds entries of one component in two places against each other: by path, else by equal digest.
#include <algorithm>
#include <set>

#include "harness/judge_parts.h"

namespace ckptverify::judging {
namespace {

/// A tied tensor that is stored once: another path with the same elements is matched.
bool stored_under_other_path(const Items& expected, const Items& found, const StateItem& item) {
  return std::any_of(expected.begin(), expected.end(), [&](const auto& other) {
    if (other.second.digest != item.digest || !other.second.is_tensor) return false;
    const auto twin = found.find(other.first);
    return twin != found.end() && twin->second.digest == item.digest;
  });
}

/// Both sides name entries alike when at least half of one side's paths are the other's too.
bool named_alike(const Items& expected, const Items& found) {
  const auto common = static_cast<std::size_t>(
      std::count_if(expected.begin(), expected.end(),
                    [&](const auto& item) { return found.contains(item.first); }));
  return common > 0 && (2 * common >= expected.size() || 2 * common >= found.size());
}

std::set<Digest> digests_of_unnamed(const Items& expected, const Items& found) {
  std::set<Digest> digests;
  for (const auto& [path, item] : found)
    if (!expected.contains(path)) digests.insert(item.digest);
  return digests;
}

}  // namespace

Match match(const Items& expected, const Items& found) {
  Match result;
  const bool alike = named_alike(expected, found);
  const std::set<Digest> unnamed = digests_of_unnamed(expected, found);
  for (const auto& [path, item] : expected) {
    const auto twin = found.find(path);
    if (twin != found.end() && twin->second.digest == item.digest) {
      ++result.equal_count;
    } else if (twin != found.end() && twin->second.is_tensor != item.is_tensor) {
      result.other_kinds.push_back({path, EntryFault::kDiffers, &item, &twin->second});
    } else if (twin != found.end()) {
      result.differences.push_back({path, EntryFault::kDiffers, &item, &twin->second});
    } else if (((item.is_tensor || !alike) && unnamed.contains(item.digest)) ||
               stored_under_other_path(expected, found, item)) {
      ++result.equal_count;
    } else if (alike) {
      result.differences.push_back({path, EntryFault::kMissing, &item, nullptr});
    } else {
      ++result.unmatched_count;
    }
  }
  return result;
}

Items told_part(const Items& disk, const Items* told) {
  if (told == nullptr) return disk;
  std::set<Digest> digests;
  for (const auto& [path, item] : *told) digests.insert(item.digest);
  Items part;
  for (const auto& [path, item] : disk)
    if (told->contains(path) || digests.contains(item.digest)) part.emplace(path, item);
  return part;
}

std::string equals_instead(const Case& subject, const std::string& label,
                           const EntryDifference& difference) {
  if (difference.found == nullptr) return {};
  const Digest& digest = difference.found->digest;
  const auto equal_in = [&](const StateDigests& state, const std::string& path) {
    const Items* items = find_component(state, label);
    if (items == nullptr) return false;
    const auto item = items->find(path);
    return item != items->end() && item->second.digest == digest;
  };
  if (equal_in(subject.init, difference.path)) return "the initial state";
  for (const auto& [step, state] : subject.interrupted.saves)
    if (step != subject.save_step() && equal_in(state, difference.path))
      return "the state saved at " + step_text(step);
  if (subject.disk == nullptr) return {};
  for (const auto& [other_label, items] : *subject.disk)
    for (const auto& [path, item] : items)
      if (item.is_tensor && item.digest == digest &&
          (other_label != label || path != difference.path))
        return "the checkpoint's " + other_label + " entry " + path;
  return {};
}

bool equals_initial(const Case& subject, const std::string& label,
                    const std::vector<EntryDifference>& differences) {
  const Items* initial = find_component(subject.init, label);
  if (initial == nullptr || differences.empty()) return false;
  return std::all_of(
      differences.begin(), differences.end(), [&](const EntryDifference& difference) {
        const auto item = initial->find(difference.path);
        if (difference.found == nullptr) return item == initial->end();
        return item != initial->end() && item->second.digest == difference.found->digest;
      });
}

}  // namespace ckptverify::judging
