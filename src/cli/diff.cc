// `ckptverify diff`: how the states of two checkpoints differ, whatever their formats and
// shardings.
#include "src/cli/diff.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "ckptverify/comparison.h"

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

void print_difference(const Difference& difference) {
  std::cout << "  " << difference.path << ": " << difference_kind_name(difference.kind);
  if (!difference.first.empty() || !difference.second.empty()) {
    std::cout << ", " << (difference.first.empty() ? "nothing" : difference.first) << " and "
              << (difference.second.empty() ? "nothing" : difference.second);
  }
  if (difference.differing_count > 0) {
    std::cout << "; " << difference.differing_count << " elements";
    if (difference.first_index) std::cout << ", the first at " << *difference.first_index;
  }
  if (difference.max_absolute) std::cout << "; max abs " << *difference.max_absolute;
  if (difference.max_relative) std::cout << ", rel " << *difference.max_relative;
  if (difference.max_ulp) std::cout << ", " << *difference.max_ulp << " ulp";
  std::cout << '\n';
}

void print_text(const Comparison& comparison, const DiffOptions& options) {
  for (const std::string& note : comparison.notes) std::cout << note << '\n';
  if (comparison.equal()) {
    std::cout << "equal: " << comparison.compared_count << " entries\n";
    return;
  }
  std::map<std::string, std::size_t> groups;
  for (const Difference& difference : comparison.differences) {
    ++groups[std::string(component_name(difference.component)) + ", " +
             std::string(difference_kind_name(difference.kind))];
  }
  std::cout << comparison.differences.size() << " differences; " << comparison.compared_count
            << " entries are in both\n";
  for (const auto& [group, count] : groups) std::cout << "  " << group << ": " << count << '\n';

  // Worst first, so that the screenful shows what matters.
  std::vector<Difference> ordered = comparison.differences;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Difference& a, const Difference& b) {
    return a.max_relative.value_or(-1) > b.max_relative.value_or(-1);
  });
  const std::size_t listed =
      options.all ? ordered.size() : std::min(ordered.size(), kListedDifferences);
  std::cout << (listed < ordered.size() ? "the worst:\n" : "all:\n");
  for (std::size_t index = 0; index < listed; ++index) print_difference(ordered[index]);
  if (listed < ordered.size()) {
    std::cout << "  ... and " << ordered.size() - listed << " more: --all\n";
  }
}

Result<int> run_diff(const DiffOptions& options) {
  ComparisonOptions comparison_options{
      .tolerance = {.relative = options.relative, .absolute = options.absolute},
      .threads = {options.common.threads}};
  for (const std::string& text : options.maps) {
    CKPTVERIFY_TRY(PathRule rule, path_rule(text));
    comparison_options.rules.push_back(std::move(rule));
  }
  CKPTVERIFY_TRY(const Checkpoint first, read_checkpoint(options.first));
  CKPTVERIFY_TRY(const Checkpoint second, read_checkpoint(options.second));
  CKPTVERIFY_TRY(const Comparison comparison, compare(first, second, comparison_options));

  std::vector<std::string> uninterpreted = first.uninterpreted;
  uninterpreted.insert(uninterpreted.end(), second.uninterpreted.begin(),
                       second.uninterpreted.end());
  if (options.common.output() == Output::kText) {
    print_text(comparison, options);
    for (const std::string& what : uninterpreted) std::cout << "not interpreted: " << what << '\n';
  } else {
    Json::Array differences;
    for (const Difference& difference : comparison.differences) {
      differences.push_back(difference_json(difference));
    }
    print_json(
        Json::Object{{"schema", "ckptverify.diff/1"},
                     {"equal", comparison.equal()},
                     {"compared", comparison.compared_count},
                     {"differences", std::move(differences)},
                     {"notes", Json::Array(comparison.notes.begin(), comparison.notes.end())},
                     {"uninterpreted", Json::Array(uninterpreted.begin(), uninterpreted.end())}});
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
  command->add_option("--map", options->maps, "Rename paths first: REGEX=REPLACEMENT (repeatable)");
  command->add_flag("--all", options->all, "List every difference, not only the worst");
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Exit code 0: equal within the tolerance (by default bit for bit). 1: they differ.\n"
      "Examples: ckptverify diff run-a/step-1000 run-b/step-1000\n"
      "          ckptverify diff a.pt b.safetensors --map '^module\\.=' --rtol 1e-6");
  command->callback([options, &exit_code] {
    const Result<int> code = run_diff(*options);
    exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace ckptverify::cli
