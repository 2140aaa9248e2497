// `ckptverify check`: the static verdict on one checkpoint, from its bytes alone.
#include "src/cli/check.h"

#include <memory>

#include "ckptverify/check.h"
#include "src/cli/report_output.h"

namespace ckptverify::cli {
namespace {

struct CheckCommandOptions {
  CommonOptions common;
  std::string checkpoint;
  std::vector<std::string> required;

  std::vector<std::string> repeat() const {
    std::vector<std::string> words = {tool_path().string(), "check", checkpoint};
    for (const std::string& name : required) words.insert(words.end(), {"--require", name});
    return words;
  }
};

Result<std::vector<Component>> required_components(const std::vector<std::string>& names) {
  std::vector<Component> required;
  for (const std::string& name : names) {
    const std::optional<Component> component = component_named(name);
    if (!component) {
      std::string known;
      for (const Component each : components()) known += " " + std::string(component_name(each));
      return Error{ErrorKind::kUsage, "found '" + name + "', expected one of" + known, "--require"};
    }
    required.push_back(*component);
  }
  return required;
}

Result<int> run_check(const CheckCommandOptions& options) {
  CKPTVERIFY_TRY(const std::vector<Component> required, required_components(options.required));
  // A path that cannot be opened is the caller's mistake; what cannot be read is the verdict.
  CKPTVERIFY_TRY(const Source source, Source::open(options.checkpoint));
  Report report{.command = "check", .subject = options.checkpoint};
  const Threads threads{options.common.threads};
  Result<Checkpoint> checkpoint = read_checkpoint(options.checkpoint);
  if (checkpoint) {
    report.checks = check_checkpoint(*checkpoint, {.required = required, .threads = threads});
    if (const auto digests = fingerprint(*checkpoint, threads))
      report.fingerprint = digests->whole.text();
  } else {
    report.checks.push_back(finding_of(checkpoint.error(), "static.readable"));
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
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Examples: ckptverify check checkpoints/step-1000\n"
      "          ckptverify check checkpoints/step-1000 --require model,optimizer,rng --json");
  command->callback([options, &exit_code] {
    const Result<int> code = run_check(*options);
    exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace ckptverify::cli
