// `ckptverify diff`: how the states of two checkpoints differ, whatever their formats and
// shardings.
#include "src/cli/diff.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>
#include <optional>

#include "src/cli/diff_output.h"
#include "src/cli/progress.h"

namespace ckptverify::cli {
namespace {

struct DiffOptions {
  CommonOptions common;
  std::string first;
  std::string second;
  std::string relative = "0";
  std::string absolute = "0";
  std::vector<std::string> maps;
  bool exact_names = false;
  bool all = false;
};

std::optional<double> tolerance_of(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !(value >= 0))
    return std::nullopt;
  return value;
}

/// What is wrong with the text of a tolerance; empty if nothing is.
std::string tolerance_problem(const std::string& text) {
  if (tolerance_of(text)) return "";
  return "found '" + plain_text(text) + "', expected a number, 0 or more";
}

Result<PathRule> path_rule(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorKind::kUsage, "found '" + text + "', expected REGEX=REPLACEMENT", "--map"};
  }
  return PathRule{text.substr(0, equals), text.substr(equals + 1)};
}

Result<ComparisonOptions> comparison_options(const DiffOptions& options) {
  ComparisonOptions result{.tolerance = {.relative = tolerance_of(options.relative).value_or(0),
                                         .absolute = tolerance_of(options.absolute).value_or(0)},
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
    print_diff(comparison, {.first = options.first,
                            .second = options.second,
                            .tolerance = how.tolerance,
                            .all = options.all});
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
      ->check(tolerance_problem)
      ->type_name("NUMBER");
  command->add_option("--atol", options->absolute, "Absolute tolerance")
      ->check(tolerance_problem)
      ->type_name("NUMBER");
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
      "2 equal as far as it was interpreted, or one of the two is malformed, 64 wrong usage,\n"
      "66 one cannot be opened.\n"
      "Examples: ckptverify diff run-a/step-1000 run-b/step-1000\n"
      "          ckptverify diff a.pt b.safetensors --map '^encoder\\.=' --rtol 1e-6");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_diff(*options), "diff", options->common.output(), kExitInconclusive);
  });
}

}  // namespace ckptverify::cli
