// No line is longer than a screen is wide, whatever the names are.
#include "src/cli/diff_output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>

#include "ckptverify/count_text.h"

namespace ckptverify::cli {
namespace {

constexpr std::size_t kListedDifferences = 20;  // a screenful; --all and --json list every one
constexpr std::size_t kDetailIndent = 6;

Json difference_json(const Difference& difference) {
  Json json = Json::Object{{"path", difference.path},
                           {"component", component_name(difference.component)},
                           {"kind", difference_kind_name(difference.kind)},
                           {"first", difference.first},
                           {"second", difference.second}};
  if (difference.first_index) {
    json.set("first_index", *difference.first_index);
    json.set("index_text", index_text(difference));
  }
  if (difference.differing_count > 0) json.set("differing_count", difference.differing_count);
  if (difference.max_absolute) json.set("max_absolute", *difference.max_absolute);
  if (difference.max_relative) json.set("max_relative", *difference.max_relative);
  if (difference.max_ulp) json.set("max_ulp", *difference.max_ulp);
  return json;
}

Json components_json(const Comparison& comparison) {
  Json::Object components;
  for (const auto& [label, component] : comparison.components) {
    components.emplace_back(label, Json::Object{{"equal", component.equal},
                                                {"differing", component.differing},
                                                {"missing", component.missing},
                                                {"unexpected", component.unexpected},
                                                {"first_bytes", component.first_bytes},
                                                {"second_bytes", component.second_bytes}});
  }
  return components;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

std::string or_nothing(const std::string& text) {
  return text.empty() ? "nothing" : shortened(plain_text(text));
}

/// What is different, in a few words.
std::string what_text(const Difference& difference) {
  switch (difference.kind) {
    case DifferenceKind::kMissing:
      return "only in A: " + or_nothing(difference.first);
    case DifferenceKind::kUnexpected:
      return "only in B: " + or_nothing(difference.second);
    case DifferenceKind::kComponent:
      return "filed under " + plain_text(difference.first) + " in A, " +
             plain_text(difference.second) + " in B";
    case DifferenceKind::kType:
    case DifferenceKind::kDtype:
    case DifferenceKind::kShape:
      return std::string(difference_kind_name(difference.kind)) + ": " +
             or_nothing(difference.first) + " and " + or_nothing(difference.second);
    case DifferenceKind::kBytes:
    case DifferenceKind::kValue:
      break;
  }
  const std::string values = or_nothing(difference.first) + " and " + or_nothing(difference.second);
  return difference.kind == DifferenceKind::kBytes ? values + ", equal as numbers" : values;
}

/// "2 of 6 elements, the first at [1, 0]".
std::string where_text(const Difference& difference) {
  if (!difference.first_index) return "";
  std::uint64_t all = 1;
  for (const std::uint64_t size : difference.shape) all *= size;
  const std::string index = index_text(difference);
  return std::to_string(difference.differing_count) + " of " + count_text(all, "element") +
         (index.empty() ? "" : ", the first at " + index);
}

std::string how_much_text(const Difference& difference) {
  std::string text;
  if (difference.max_absolute) text += "max abs " + number_text(*difference.max_absolute);
  if (difference.max_relative) text += ", rel " + number_text(*difference.max_relative);
  if (difference.max_ulp) text += ", " + std::to_string(*difference.max_ulp) + " ulp";
  return text;
}

void print_difference(const Difference& difference) {
  std::cout << "  " << shortened_path(plain_text(difference.path)) << '\n';
  std::vector<std::string> phrases;
  for (std::string phrase :
       {what_text(difference), where_text(difference), how_much_text(difference)})
    if (!phrase.empty()) phrases.push_back(std::move(phrase));
  std::cout << joined_lines(phrases, "; ", kDetailIndent);
}

/// One line a component: what is equal, what differs, what only one side has, and sizes.
void print_components(const Comparison& comparison) {
  const auto line = [](const std::string& label, const std::array<std::string, 6>& cells) {
    std::array<char, 160> text{};
    std::snprintf(text.data(), text.size(), "  %-14s %9s %9s %9s %9s  %11s  %11s", label.c_str(),
                  cells[0].c_str(), cells[1].c_str(), cells[2].c_str(), cells[3].c_str(),
                  cells[4].c_str(), cells[5].c_str());
    std::cout << text.data() << '\n';
  };
  line("component", {"equal", "differ", "only in A", "only in B", "tensors A", "tensors B"});
  for (const auto& [label, component] : comparison.components) {
    line(label, {std::to_string(component.equal), std::to_string(component.differing),
                 std::to_string(component.missing), std::to_string(component.unexpected),
                 size_text(component.first_bytes), size_text(component.second_bytes)});
  }
}

/// How bad a difference is among those of one component: what is another thing before any number,
/// numbers by how far apart they are, then what no number measures, then other bits of one number.
/// Relative errors do not order: from zero every one is infinite.
std::pair<int, double> badness(const Difference& difference) {
  if (difference.kind == DifferenceKind::kBytes) return {0, 0};
  if (difference.kind != DifferenceKind::kValue) return {3, 0};
  if (!difference.max_absolute) return {1, 0};
  const double absolute = *difference.max_absolute;
  return {2, std::isnan(absolute) ? HUGE_VAL : absolute};
}

using ByComponent = std::map<Component, std::vector<const Difference*>>;

ByComponent worst_first(const Comparison& comparison) {
  ByComponent groups;
  for (const Difference& difference : comparison.differences)
    groups[difference.component].push_back(&difference);
  for (auto& [component, group] : groups)
    std::stable_sort(group.begin(), group.end(), [](const Difference* a, const Difference* b) {
      return badness(*a) > badness(*b);
    });
  return groups;
}

/// How many of each component are listed: all in turn get one more until the screen is full.
std::map<Component, std::size_t> shares(const ByComponent& groups, bool all) {
  std::map<Component, std::size_t> listed;
  std::size_t total = 0;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [component, group] : groups) {
      std::size_t& count = listed[component];
      if (count == group.size() || (!all && total == kListedDifferences)) continue;
      ++count;
      ++total;
      more = true;
    }
  }
  return listed;
}

void print_differences(const Comparison& comparison, bool all) {
  const ByComponent groups = worst_first(comparison);
  const auto listed = shares(groups, all);
  bool whole = true;
  for (const auto& [component, group] : groups) {
    const std::size_t count = listed.at(component);
    std::cout << '\n' << component_name(component) << ", the worst first\n";
    for (std::size_t i = 0; i < count; ++i) print_difference(*group[i]);
    if (count == group.size()) continue;
    whole = false;
    std::cout << "  ... and " << group.size() - count << " more\n";
  }
  if (!whole) std::cout << "\n--all lists every difference.\n";
}

}  // namespace

void print_diff(const Comparison& comparison, const DiffText& how) {
  if (comparison.equal()) {
    std::cout << "equal: " << count_text(comparison.compared_count, "entry");
    const bool exact = how.tolerance.relative == 0 && how.tolerance.absolute == 0;
    std::cout << (exact ? ", bit for bit\n" : ", within the tolerance\n");
  } else {
    std::cout << count_text(comparison.differences.size(), "difference") << "; "
              << count_text(comparison.compared_count, "entry is", "entries are") << " in both\n";
  }
  std::cout << "A " << how.first << "\nB " << how.second << "\n\n";
  print_components(comparison);
  if (!comparison.notes.empty()) std::cout << '\n';
  for (const std::string& note : comparison.notes) std::cout << plain_text(note) << '\n';
  if (!comparison.equal()) print_differences(comparison, how.all);
}

Json diff_json(const Comparison& comparison, const std::vector<std::string>& uninterpreted) {
  Json::Array differences;
  for (const Difference& difference : comparison.differences) {
    differences.push_back(difference_json(difference));
  }
  return Json::Object{{"schema", "ckptverify.diff/1"},
                      {"equal", comparison.equal()},
                      {"compared", comparison.compared_count},
                      {"components", components_json(comparison)},
                      {"differences", std::move(differences)},
                      {"notes", Json::Array(comparison.notes.begin(), comparison.notes.end())},
                      {"uninterpreted", Json::Array(uninterpreted.begin(), uninterpreted.end())}};
}

}  // namespace ckptverify::cli
