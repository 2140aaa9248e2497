// `ckptverify check`: the static verdict on one checkpoint, from its bytes alone.
#include "src/cli/check.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "ckptverify/check.h"
#include "ckptverify/path_pattern.h"
#include "src/cli/collection_output.h"
#include "src/cli/progress.h"
#include "src/cli/report_output.h"

namespace ckptverify::cli {
namespace {

struct CheckCommandOptions {
  CommonOptions common;
  std::string checkpoint;
  std::vector<std::string> required;
  std::vector<std::string> component_maps;
  bool strict = false;

  std::vector<std::string> repeat() const {
    std::vector<std::string> words = {tool_path().string(), "check", whole_path(checkpoint)};
    for (const std::string& name : required) words.insert(words.end(), {"--require", name});
    for (const std::string& map : component_maps) {
      words.insert(words.end(), {"--component-map", map});
    }
    if (strict) words.push_back("--strict");
    return words;
  }
};

Result<Component> component_of(const std::string& name, const std::string& option) {
  if (const std::optional<Component> component = component_named(name)) return *component;
  std::string known;
  for (const Component each : components()) known += " " + std::string(component_name(each));
  return Error{ErrorKind::kUsage, "found '" + name + "', expected one of" + known, option};
}

Result<std::vector<Component>> required_components(const std::vector<std::string>& names) {
  std::vector<Component> required;
  for (const std::string& name : names) {
    CKPTVERIFY_TRY(const Component component, component_of(name, "--require"));
    required.push_back(component);
  }
  return required;
}

Result<std::vector<ComponentRule>> component_rules(const std::vector<std::string>& texts) {
  std::vector<ComponentRule> rules;
  for (const std::string& text : texts) {
    Result<ComponentRule> rule = component_rule(text);
    if (!rule) return std::move(rule).error().about("--component-map");
    rules.push_back(*std::move(rule));
  }
  return rules;
}

/// What the command line asks for beyond the checkpoint's path.
struct Request {
  CheckOptions check;
  std::vector<ComponentRule> rules;
};

Result<Request> request_of(const CheckCommandOptions& options) {
  Request request;
  CKPTVERIFY_TRY(request.check.required, required_components(options.required));
  CKPTVERIFY_TRY(request.rules, component_rules(options.component_maps));
  request.check.threads.count = options.common.threads;
  request.check.not_finite = options.strict ? NotFinite::kFail : NotFinite::kWarn;
  return request;
}

Result<void> check_whole(Checkpoint& checkpoint, const Request& request, Report& report) {
  CKPTVERIFY_TRY_VOID(map_components(checkpoint, request.rules));
  Progress progress("checking", bytes_of_files(checkpoint));
  CheckOptions check = request.check;
  check.threads.bytes_read = progress.bytes_read();
  CheckResult result = check_and_fingerprint(checkpoint, check);
  report.checks = std::move(result.findings);
  if (result.fingerprint) report.fingerprint = result.fingerprint->whole.text();
  return {};
}

Result<void> check_one(const Source& source, const Request& request, Report& report) {
  Result<Checkpoint> checkpoint = read_checkpoint(source);
  if (checkpoint) return check_whole(*checkpoint, request, report);
  // What cannot be read is the verdict; a path that is no single checkpoint is the caller's
  // mistake.
  if (checkpoint.error().kind == ErrorKind::kUsage) return std::move(checkpoint).error();
  report.checks.push_back(finding_of(checkpoint.error(), "static.readable"));
  return {};
}

Result<int> run_check(const CheckCommandOptions& options) {
  CKPTVERIFY_TRY(const Request request, request_of(options));
  CKPTVERIFY_TRY(const Source source, Source::open(options.checkpoint));
  Report report{.command = "check", .subject = options.checkpoint};
  CKPTVERIFY_TRY(auto of_folder, check_collection(source, request.check));
  if (of_folder) {
    report.checks = *std::move(of_folder);
  } else {
    CKPTVERIFY_TRY_VOID(check_one(source, request, report));
  }
  report.environment = tool_environment();
  report.repeat_command = shell_text(options.repeat());
  conclude(report);
  if (report.verdict == Verdict::kPass) {
    report.proven.push_back("the checkpoint can be read without the program that wrote it");
  }
  print_report(report, options.common.output());
  return exit_code(report.verdict);
}

}  // namespace

void add_check(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "check", "Static verdict on one checkpoint: readable, complete, checksums, finite values");
  auto options = std::make_shared<CheckCommandOptions>();
  command->add_option("checkpoint", options->checkpoint, "File or directory")->required();
  command
      ->add_option("--require", options->required,
                   "Components that must be there, such as optimizer,rng")
      ->delimiter(',');
  command->add_option("--component-map", options->component_maps,
                      "What entries are for: REGEX=COMPONENT over whole paths (repeatable)");
  command->add_flag("--strict", options->strict,
                    "NaN, Infinity and tensors that are zero all over fail instead of warn");
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Exit codes: 0 pass, 1 fail, 2 inconclusive, 64 wrong usage, 66 cannot be opened.\n"
      "Examples: ckptverify check checkpoints/step-1000\n"
      "          ckptverify check checkpoints/step-1000 --require model,optimizer,rng --json\n"
      "          ckptverify check mine.pt --component-map '^teacher\\.=ema' --strict");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_check(*options), "check", options->common.output());
  });
}

}  // namespace ckptverify::cli
