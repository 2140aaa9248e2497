#include "src/matching_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

namespace ckptverify {
namespace {

constexpr std::array<std::string_view, 4> kWrapperParts = {
    "_orig_mod", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};
// DataParallel's; a real module may have this name further down.
constexpr std::string_view kOuterWrapper = "module";

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    parts.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Where a list of parameters has one: optimizer, group, place in the group.
using ParameterPlace = std::tuple<std::string, std::uint64_t, std::uint64_t>;

/// "param_groups.0.params.3", behind the optimizer's own index if there are several.
std::optional<ParameterPlace> parameter_place(const NamedEntry& named) {
  const std::size_t start = named.path.find("param_groups.");
  if (start == std::string::npos || (start != 0 && named.path[start - 1] != '.')) {
    return std::nullopt;
  }
  const auto parts = parts_of(std::string_view(named.path).substr(start));
  if (parts.size() != 4 || parts[2] != "params") return std::nullopt;
  const auto group = number(parts[1]);
  const auto place = number(parts[3]);
  if (!group || !place) return std::nullopt;
  return ParameterPlace{named.label + "/" + named.path.substr(0, start), *group, *place};
}

/// One side's lists of parameters.
struct ParameterLists {
  std::map<ParameterPlace, std::size_t> places;  // index into the side's entries
  bool by_position = true;                       // every parameter is a number
  bool by_name = true;                           // every parameter is a string
};

ParameterLists parameter_lists(const std::vector<NamedEntry>& entries) {
  ParameterLists lists;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].entry->component != Component::kOptimizer) continue;
    const auto* value = std::get_if<Value>(&entries[i].entry->node);
    if (value == nullptr) continue;
    const auto place = parameter_place(entries[i]);
    if (!place) continue;
    lists.places[*place] = i;
    lists.by_position = lists.by_position && std::holds_alternative<std::int64_t>(*value);
    lists.by_name = lists.by_name && std::holds_alternative<std::string>(*value);
  }
  return lists;
}

const Value& value_of(const NamedEntry& named) {
  return std::get<Value>(named.entry->node);
}

/// Prefix of the state of a parameter: "state.0.", behind what stands before param_groups.
std::string state_prefix(const ParameterPlace& place, const std::string& parameter) {
  const std::string& optimizer = std::get<0>(place);
  return optimizer.substr(optimizer.find('/') + 1) + "state." + parameter + ".";
}

void remove_at(std::vector<NamedEntry>& entries, const std::set<std::size_t>& indices) {
  std::size_t index = 0;
  std::erase_if(entries, [&](const NamedEntry&) { return indices.contains(index++); });
}

/// The prefix of every path that has one in the table becomes what the table says.
void rename(std::vector<NamedEntry>& entries, const std::map<std::string, std::string>& prefixes) {
  for (NamedEntry& named : entries) {
    if (named.entry->component != Component::kOptimizer) continue;
    const std::size_t state = named.path.find("state.");
    if (state == std::string::npos) continue;
    const std::size_t end = named.path.find('.', state + 6);
    if (end == std::string::npos) continue;
    const auto found = prefixes.find(named.label + "/" + named.path.substr(0, end + 1));
    if (found != prefixes.end()) named.path = found->second + named.path.substr(end + 1);
  }
}

}  // namespace

std::string without_wrappers(const std::string& path) {
  std::string result;
  bool outermost = true;  // "module" counts only in front of the parameter's own name
  bool keyed = false;     // a flat state's key of its model, "model.w", is a wrapper once
  const auto parts = parts_of(path);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const bool last = i + 1 == parts.size();
    if (!last && std::find(kWrapperParts.begin(), kWrapperParts.end(), part) != kWrapperParts.end())
      continue;
    if (!last && outermost && part == kOuterWrapper) continue;
    if (!last && outermost && !keyed && component_of_key(part) == Component::kModel) {
      keyed = true;
      continue;
    }
    outermost = i == 0 && part == "state";  // an optimizer's state has the name behind it
    result += (result.empty() ? "" : ".") + std::string(part);
  }
  return result;
}

std::uint64_t name_optimizer_state(
    std::vector<NamedEntry>& first, std::vector<NamedEntry>& second,
    std::vector<std::pair<const Entry*, const Entry*>>& same_parameter) {
  const ParameterLists a = parameter_lists(first);
  const ParameterLists b = parameter_lists(second);
  if (a.places.empty() || a.places.size() != b.places.size()) return 0;
  const bool first_by_position = a.by_position && b.by_name;
  if (!first_by_position && !(a.by_name && b.by_position)) return 0;
  std::map<std::string, std::string> prefixes;
  std::set<std::size_t> first_used;
  std::set<std::size_t> second_used;
  for (const auto& [place, index] : a.places) {
    const auto other = b.places.find(place);
    if (other == b.places.end()) return 0;
    const NamedEntry& one = first[index];
    const NamedEntry& two = second[other->second];
    const Value& position = value_of(first_by_position ? one : two);
    const auto& name = std::get<std::string>(value_of(first_by_position ? two : one));
    const std::string label = first_by_position ? one.label : two.label;
    prefixes[label + "/" + state_prefix(place, std::to_string(std::get<std::int64_t>(position)))] =
        state_prefix(place, name);
    first_used.insert(index);
    second_used.insert(other->second);
    same_parameter.emplace_back(one.entry, two.entry);
  }
  remove_at(first, first_used);
  remove_at(second, second_used);
  rename(first_by_position ? first : second, prefixes);
  return prefixes.size();
}

}  // namespace ckptverify
