// A checkpoint's entries by name and component. Their bytes are in logical_bytes.cc.
#include "ckptverify/checkpoint.h"

#include <algorithm>
#include <set>

namespace ckptverify {

namespace {

/// The bytes of the path up to and with the dot after its first part; 0 for a path of one part.
std::size_t first_part_size(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? 0 : dot + 1;
}

/// Where an entry goes. Most comparisons end at the first bytes of the path, which are here and not
/// all over the memory.
struct Place {
  std::uint64_t prefix;  // big-endian, zeros behind a shorter path
  std::size_t from;
};

std::uint64_t prefix_of(std::string_view path) {
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < sizeof prefix; ++i) {
    prefix = (prefix << 8) | (i < path.size() ? static_cast<unsigned char>(path[i]) : 0U);
  }
  return prefix;
}

/// Moves every entry to its place, along the cycles: a second array of a million would be as large
/// as the first.
void put_in_order(std::vector<Entry>& entries, std::vector<Place> places) {
  for (std::size_t start = 0; start < places.size(); ++start) {
    if (places[start].from == start) continue;
    Entry first = std::move(entries[start]);
    std::size_t hole = start;
    for (std::size_t from = places[hole].from; from != start; from = places[hole].from) {
      entries[hole] = std::move(entries[from]);
      places[hole].from = hole;
      hole = from;
    }
    entries[hole] = std::move(first);
    places[hole].from = hole;
  }
}

/// Stable.
void sort_by_path(std::vector<Entry>& entries) {
  const auto by_path = [](const Entry& a, const Entry& b) { return a.path < b.path; };
  if (std::is_sorted(entries.begin(), entries.end(), by_path)) return;
  std::vector<Place> places;
  places.reserve(entries.size());
  for (const Entry& entry : entries) places.push_back({prefix_of(entry.path), places.size()});
  // Lists and dictionaries come as sorted runs, of which merging makes use.
  std::stable_sort(places.begin(), places.end(), [&entries](const Place& a, const Place& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : entries[a.from].path < entries[b.from].path;
  });
  put_in_order(entries, std::move(places));
}

/// The path with the first number that makes it new: "step#2".
std::string unused_path(const std::string& path, std::set<std::string>& taken) {
  for (std::uint64_t number = 2;; ++number) {
    std::string candidate = path + "#" + std::to_string(number);
    if (taken.insert(candidate).second) return candidate;
  }
}

Finding duplicate_path(const std::string& path, const std::string& name) {
  return Finding{.check = "static.paths",
                 .status = Status::kFail,
                 .cause = Cause{.kind = CauseKind::kLayout},
                 .subject = path,
                 .message =
                     "two entries have one path, so that readers disagree about which counts; "
                     "the later one is called " +
                     name + " here"};
}

}  // namespace

std::string_view relative_path(const Entry& entry) {
  return std::string_view(entry.path).substr(entry.root_size);
}

std::string component_label(const Entry& entry) {
  std::string label(component_name(entry.component));
  if (entry.rank) label += "." + std::to_string(*entry.rank);
  return label;
}

void assign_components(std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    const std::string_view path = entry.path;
    const std::size_t dot = path.find('.');
    entry.component = component_of_key(path.substr(0, dot));
    entry.root_size = entry.component == Component::kOther ? 0 : first_part_size(path);
    if (!entry.rank || entry.root_size == 0) continue;
    // "rng.1.torch": the rank is part of the label and so of the root.
    const std::string part = std::to_string(*entry.rank) + ".";
    if (path.substr(entry.root_size, part.size()) == part) entry.root_size += part.size();
  }
}

void sort_entries(Checkpoint& checkpoint) {
  std::vector<Entry>& entries = checkpoint.entries;
  sort_by_path(entries);
  const auto same_path = [](const Entry& a, const Entry& b) { return a.path == b.path; };
  if (std::adjacent_find(entries.begin(), entries.end(), same_path) == entries.end()) return;
  std::set<std::string> taken;
  for (const Entry& entry : entries) taken.insert(entry.path);
  std::string path;  // of the run of equal paths, whose first entry keeps it
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i == 0 || entries[i].path != path) {
      path = entries[i].path;
      continue;
    }
    entries[i].path = unused_path(path, taken);
    checkpoint.findings.push_back(duplicate_path(path, entries[i].path));
  }
  sort_by_path(entries);
}

const Entry* find_entry(const Checkpoint& checkpoint, std::string_view path) {
  const auto below = [](const Entry& entry, std::string_view wanted) {
    return entry.path < wanted;
  };
  const std::vector<Entry>& entries = checkpoint.entries;
  const auto found = std::lower_bound(entries.begin(), entries.end(), path, below);
  return found == entries.end() || found->path != path ? nullptr : &*found;
}

}  // namespace ckptverify
