// `ckptverify run`: the gate. Drives the trainer through the experiment, judges, reports.
#include "src/cli/run.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <utility>

#include "formats/formats.h"
#include "harness/experiment.h"
#include "harness/judge.h"
#include "harness/program.h"
#include "src/cli/report_output.h"
#include "src/report/words.h"

namespace ckptverify::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  CommonOptions common;
  std::string plan;
  std::vector<std::string> settings;
  std::string out;
  std::string level = "standard";
  ReportCopies copies;

  std::vector<std::string> repeat() const {
    std::vector<std::string> words = {tool_path().string(), "run", whole_path(plan)};
    for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
    if (level != "standard") words.insert(words.end(), {"--level", level});
    return words;  // without --out: its directory is no longer empty, the default is another
  }
};

/// Without --out each run gets a directory of its own, so that the same command works again.
fs::path free_directory() {
  constexpr const char* kName = "ckptverify-out";
  constexpr int kTriesMax = 10'000;  // whoever has as many is told that the last is in use
  const auto is_free = [](const fs::path& path) {
    std::error_code error;
    return !fs::exists(fs::symlink_status(path, error)) ||
           (fs::is_directory(path, error) && fs::is_empty(path, error));
  };
  fs::path path = kName;
  for (int number = 2; !is_free(path) && number < kTriesMax; ++number) {
    path = std::string(kName) + "-" + std::to_string(number);
  }
  return path;
}

/// One line that is rewritten on a terminal. Elsewhere a line as a phase begins, one as it ends,
/// and between them one whenever kQuiet has passed.
class Progress {
 public:
  explicit Progress(bool terminal) : terminal_(terminal) {}

  void show(std::string_view phase, std::uint64_t step, std::uint64_t last_step) {
    const auto now = Clock::now();
    if (phase != phase_) {
      end_phase();
      phase_ = phase;
      phase_began_ = shown_ = now;
      if (!terminal_) std::cerr << phase << '\n';
    }
    std::string text = std::string(phase) + ": ";
    if (step > 0) {
      text += "step " + std::to_string(step) + " of " + std::to_string(last_step) + ", ";
    }
    const bool changed = std::exchange(text_, text) != text;
    if (terminal_ ? !changed && now - shown_ < kRedraw : now - shown_ < kQuiet) return;
    shown_ = now;
    std::cerr << (terminal_ ? "\r\033[K" : "") << text_ << duration(now) << (terminal_ ? "" : "\n")
              << std::flush;
  }

  void end() {
    end_phase();
    phase_.clear();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kQuiet{10};  // in a log of CI, often enough to see life
  static constexpr std::chrono::milliseconds kRedraw{200};  // for the eye, time passes smoothly

  void end_phase() const {
    if (phase_.empty()) return;
    if (terminal_) std::cerr << "\r\033[K" << std::flush;
    if (!terminal_) std::cerr << text_ << duration(Clock::now()) << '\n';
  }
  std::string duration(Clock::time_point now) const {
    return duration_text(std::chrono::duration<double>(now - phase_began_).count());
  }

  bool terminal_;
  std::string phase_;
  std::string text_;
  Clock::time_point phase_began_;
  Clock::time_point shown_;
};

Report make_report(const Plan& plan, ExperimentRecord record, Judgement judgement) {
  Report report{.command = "run", .subject = plan.file.string()};
  report.checks = std::move(judgement.findings);
  report.identity = std::move(judgement.identity);
  report.curves = std::move(judgement.curves);
  report.proven = std::move(judgement.proven);
  report.not_proven = std::move(judgement.not_proven);
  report.save_step = plan.save_step;
  report.final_step = plan.final_step;
  if (const auto& saved = record.observations.interrupted_saved) {
    report.fingerprint = saved->fingerprint.whole.text();
  }
  report.phases = std::move(record.phases);
  report.timings = std::move(record.timings);
  report.environment = tool_environment();
  report.seed = plan.seed;
  conclude(report);
  return report;
}

Result<int> run_gate(const RunOptions& options) {
  // Whoever stops listening to progress does not end the gate, whose report is still to be written.
  ::signal(SIGPIPE, SIG_IGN);
  CKPTVERIFY_TRY(const Settings settings, settings_of(options.settings));
  CKPTVERIFY_TRY(const Plan plan, load_plan(options.plan, settings, tool_path().parent_path()));
  CKPTVERIFY_TRY_VOID(check_programs(plan));
  CKPTVERIFY_TRY_VOID(check_report_copies(options.copies));
  const fs::path out = fs::absolute(options.out.empty() ? free_directory() : fs::path(options.out));

  Progress progress(isatty(STDERR_FILENO) != 0);
  ExperimentOptions experiment{.output_directory = out,
                               .tool = tool_path(),
                               .threads = {options.common.threads},
                               .progress = [&progress](auto... step) { progress.show(step...); }};
  Result<ExperimentRecord> record = run_experiment(plan, formats(), experiment);
  progress.end();
  if (!record) return std::move(record).error();

  Judgement judgement = judge(plan, record->observations);
  Report report = make_report(plan, *std::move(record), std::move(judgement));
  report.output_directory = out.string();
  report.repeat_command = shell_text(options.repeat());
  Result<void> written = write_report_files(report, out);
  if (written) written = write_report_copies(report, options.copies);
  print_report(report, options.common.output());
  const int code = exit_code(report.verdict);
  if (written) return code;
  // The verdict stands; a pass whose report is missing is not to be taken for a whole one.
  (void)report_error(written.error());
  return code == kExitPass ? kExitInconclusive : code;
}

}  // namespace

void add_run(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "run", "The gate: train, save, kill, restore, continue, compare; a verdict with its cause");
  auto options = std::make_shared<RunOptions>();
  command->add_option("plan", options->plan, "Plan file (TOML)")->required();
  command->add_option("--set", options->settings, "Set a variable of the plan (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--out", options->out,
                   "Directory for the report, logs and checkpoints; new or empty "
                   "(default: ckptverify-out, ckptverify-out-2, ...)")
      ->type_name("DIRECTORY");
  command->add_option("--junit", options->copies.junit, "Also write the checks as JUnit XML there")
      ->type_name("FILE");
  command
      ->add_option("--markdown", options->copies.markdown,
                   "Also write the report as Markdown there, for a pull request or a step summary")
      ->type_name("FILE");
  command->add_option("--level", options->level, "How much is tried; equal in this version")
      ->check(CLI::IsMember({"quick", "standard", "deep"}))
      ->capture_default_str();
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Exit codes: 0 pass, 1 fail, 2 inconclusive, 64 wrong usage, such as a plan that is not "
      "valid,\n"
      "66 the plan or a program cannot be opened.\n"
      "Examples: ckptverify run plan.toml --out gate\n"
      "          ckptverify run plan.toml --set format=safetensors --set shards=4 --json");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_gate(*options), "run", options->common.output());
  });
}

}  // namespace ckptverify::cli
