// `ckptverify diff`: how the states of two checkpoints differ, whatever their formats and
// shardings.
#include "src/cli/diff.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>

#include "ckptverify/comparison.h"
#include "ckptverify/count_text.h"
#include "src/cli/progress.h"

namespace ckptverify::cli {
namespace {

constexpr std::size_t kListedDifferences = 20;  // a screenful; --all and --json list every one

struct DiffOptions {
  CommonOptions common;
  std::string first;
  std::string second;
  double relative = 0;
  double absolute = 0;
  std::vector<std::string> maps;
  bool exact_names = false;
  bool all = false;
};

Result<PathRule> path_rule(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorKind::kUsage, "found '" + text + "', expected REGEX=REPLACEMENT", "--map"};
  }
  return PathRule{text.substr(0, equals), text.substr(equals + 1)};
}

Json difference_json(const Difference& difference) {
  Json json = Json::Object{{"path", difference.path},
                           {"component", component_name(difference.component)},
                           {"kind", difference_kind_name(difference.kind)},
                           {"first", difference.first},
                           {"second", difference.second}};
  if (difference.first_index) json.set("first_index", *difference.first_index);
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

void print_difference(const Difference& difference) {
  std::cout << "  " << plain_text(difference.path) << ": " << difference_kind_name(difference.kind);
  if (!difference.first.empty() || !difference.second.empty()) {
    std::cout << ", " << (difference.first.empty() ? "nothing" : plain_text(difference.first))
              << " and " << (difference.second.empty() ? "nothing" : plain_text(difference.second));
  }
  if (difference.differing_count > 0) {
    std::cout << "; " << difference.differing_count
              << (difference.differing_count == 1 ? " element" : " elements");
    if (difference.first_index) std::cout << ", the first at index " << *difference.first_index;
  }
  if (difference.max_absolute) std::cout << "; max abs " << *difference.max_absolute;
  if (difference.max_relative) std::cout << ", rel " << *difference.max_relative;
  if (difference.max_ulp) std::cout << ", " << *difference.max_ulp << " ulp";
  std::cout << '\n';
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

/// How bad a difference is: what is there on one side alone is worse than any number, and a number
/// that is none worse than any that is.
double badness(const Difference& difference) {
  switch (difference.kind) {
    case DifferenceKind::kBytes:
      return 0;
    case DifferenceKind::kValue: {
      const double relative = difference.max_relative.value_or(HUGE_VAL);
      return std::isnan(relative) ? HUGE_VAL : relative;
    }
    default:
      return HUGE_VAL;
  }
}

void print_differences(const Comparison& comparison, const DiffOptions& options) {
  std::vector<Difference> ordered = comparison.differences;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Difference& a, const Difference& b) {
    return badness(a) > badness(b);
  });
  const std::size_t listed =
      options.all ? ordered.size() : std::min(ordered.size(), kListedDifferences);
  std::cout << (listed < ordered.size() ? "\nThe worst\n" : "\nDifferences, the worst first\n");
  for (std::size_t index = 0; index < listed; ++index) print_difference(ordered[index]);
  if (listed < ordered.size()) {
    std::cout << "  ... and " << ordered.size() - listed << " more: --all\n";
  }
}

void print_text(const Comparison& comparison, const DiffOptions& options) {
  const auto count = comparison.differences.size();
  if (comparison.equal()) {
    std::cout << "equal: " << count_text(comparison.compared_count, "entry");
    const bool exact = options.relative == 0 && options.absolute == 0;
    std::cout << (exact ? ", bit for bit\n" : ", within the tolerance\n");
  } else {
    std::cout << count_text(count, "difference") << "; "
              << count_text(comparison.compared_count, "entry is", "entries are") << " in both\n";
  }
  std::cout << "A " << options.first << "\nB " << options.second << "\n\n";
  print_components(comparison);
  if (!comparison.notes.empty()) std::cout << '\n';
  for (const std::string& note : comparison.notes) std::cout << plain_text(note) << '\n';
  if (!comparison.equal()) print_differences(comparison, options);
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

Result<ComparisonOptions> comparison_options(const DiffOptions& options) {
  ComparisonOptions result{
      .tolerance = {.relative = options.relative, .absolute = options.absolute},
      .threads = {options.common.threads},
      .names = options.exact_names ? Names::kExact : Names::kByMeaning,
      .first_name = options.first,
      .second_name = options.second};
  for (const std::string& text : options.maps) {
    CKPTVERIFY_TRY(PathRule rule, path_rule(text));
    result.rules.push_back(std::move(rule));
  }
  return result;
}

std::vector<std::string> uninterpreted_of(const Checkpoint& checkpoint, const std::string& path) {
  std::vector<std::string> texts;
  for (const std::string& what : checkpoint.uninterpreted) texts.push_back(path + ": " + what);
  return texts;
}

Result<int> run_diff(const DiffOptions& options) {
  CKPTVERIFY_TRY(ComparisonOptions how, comparison_options(options));
  CKPTVERIFY_TRY(const Checkpoint first, read_checkpoint(options.first));
  CKPTVERIFY_TRY(const Checkpoint second, read_checkpoint(options.second));
  const auto compare_with_progress = [&] {
    Progress progress("comparing", bytes_of_files(first) + bytes_of_files(second));
    how.threads.bytes_read = progress.bytes_read();
    return compare(first, second, how);
  };
  CKPTVERIFY_TRY(const Comparison comparison, compare_with_progress());

  std::vector<std::string> uninterpreted = uninterpreted_of(first, options.first);
  for (std::string& what : uninterpreted_of(second, options.second)) {
    uninterpreted.push_back(std::move(what));
  }
  if (options.common.output() == Output::kJson) {
    print_json(diff_json(comparison, uninterpreted));
  } else {
    print_text(comparison, options);
    for (const std::string& what : uninterpreted) {
      std::cout << "not interpreted, not compared: " << plain_text(what) << '\n';
    }
  }
  if (!comparison.equal()) return kExitFail;
  return uninterpreted.empty() ? kExitPass : kExitInconclusive;
}

}  // namespace

void add_diff(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "diff", "Compare the states of two checkpoints, also across formats and shardings");
  auto options = std::make_shared<DiffOptions>();
  command->add_option("first", options->first, "File or directory")->required();
  command->add_option("second", options->second, "File or directory")->required();
  command
      ->add_option("--rtol", options->relative, "Relative tolerance: |a - b| <= atol + rtol * |b|")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--atol", options->absolute, "Absolute tolerance")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--map", options->maps,
                      "Rename paths inside their component first: REGEX=REPLACEMENT (repeatable)");
  command->add_flag("--exact-names", options->exact_names,
                    "Match by equal names alone: no wrappers' prefixes, no optimizer state by "
                    "position, no tied tensors found by their bytes");
  command->add_flag("--all", options->all, "List every difference, not only the worst");
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Names that differ by module., _orig_mod. and other wrappers' prefixes match, an "
      "optimizer's\n"
      "state matches by name or by position, and a tensor that one side stores under one of its "
      "two\n"
      "names is no difference: each is noted.\n"
      "Exit codes: 0 equal within the tolerance (by default bit for bit), 1 they differ,\n"
      "2 equal as far as it was interpreted, 64 wrong usage, 66 one cannot be opened.\n"
      "Examples: ckptverify diff run-a/step-1000 run-b/step-1000\n"
      "          ckptverify diff a.pt b.safetensors --map '^encoder\\.=' --rtol 1e-6");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_diff(*options), "diff", options->common.output());
  });
}

}  // namespace ckptverify::cli
