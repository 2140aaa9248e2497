// `ckptverify doctor`: what can be observed and promised on this machine and, given a plan, what of
// the plan can work, before anything is run.
#include "src/cli/doctor.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>

#include "ckptverify/plan.h"
#include "harness/program.h"
#include "src/report/words.h"

namespace ckptverify::cli {
namespace {

namespace fs = std::filesystem;

struct DoctorOptions {
  CommonOptions common;
  std::string plan;
  std::vector<std::string> settings;
  std::string directory = ".";
};

Finding observation(std::string check, bool good, std::string yes, std::string no,
                    Status otherwise) {
  return {.check = std::move(check),
          .status = good ? Status::kPass : otherwise,
          .message = good ? std::move(yes) : std::move(no)};
}

/// Whether a file in the directory can be cloned, by cloning one.
bool clones_files(const fs::path& directory) {
  std::string from = (directory / "ckptverify-doctor-XXXXXX").string();
  std::string to = from;
  const int source = mkostemp(from.data(), O_CLOEXEC);
  if (source < 0) return false;
  const int target = mkostemp(to.data(), O_CLOEXEC);
  const bool written = ::write(source, "x", 1) == 1;
  const bool cloned = target >= 0 && written && ioctl(target, FICLONE, source) == 0;
  ::close(source);
  ::unlink(from.c_str());
  if (target >= 0) {
    ::close(target);
    ::unlink(to.c_str());
  }
  return cloned;
}

bool subreaper_works() {
  const bool set = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  return set;
}

bool cgroup_group_can_be_made() {
  std::ifstream stream("/proc/self/cgroup");
  std::string line;
  while (std::getline(stream, line)) {
    if (line.rfind("0::", 0) != 0) continue;
    const fs::path group = fs::path("/sys/fs/cgroup") / fs::path(line.substr(3)).relative_path();
    return ::access(group.c_str(), W_OK) == 0 &&
           ::access((group / "cgroup.kill").c_str(), W_OK) == 0;
  }
  return false;
}

/// The directory itself, or what is there of the way to it.
fs::path existing_part(const fs::path& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error).lexically_normal();
  while (!fs::exists(path, error) && path.has_parent_path() && path != path.root_path()) {
    path = path.parent_path();
  }
  return path;
}

/// Whether `run` could write there. It makes a directory that is not there.
Finding examine_directory(const fs::path& directory, const fs::path& existing) {
  Finding finding{.check = "machine.directory", .subject = directory.string(), .message = {}};
  std::error_code error;
  const bool is_there = fs::exists(directory, error);
  if (!fs::is_directory(existing, error)) {
    finding.status = Status::kFail;
    finding.message = existing.string() + " is no directory";
  } else if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    finding.status = Status::kFail;
    finding.message = existing.string() + " cannot be written to";
  } else if (!is_there) {
    finding.status = Status::kWarn;
    finding.message = directory.string() +
                      " is not there; run would make it, and what follows is "
                      "said of " +
                      existing.string();
  } else {
    finding.message = directory.string() + " can be written to";
  }
  return finding;
}

std::vector<Finding> examine_machine(const fs::path& wanted) {
  const fs::path directory = existing_part(wanted);
  std::vector<Finding> findings = {examine_directory(wanted, directory)};
  findings.push_back(observation(
      "machine.subreaper", subreaper_works(),
      "processes that detach from a trainer can be found and killed",
      "the kernel refuses a subreaper: detached processes can escape a kill", Status::kFail));
  findings.push_back(observation(
      "machine.proc",
      ::access(("/proc/self/task/" + std::to_string(getpid()) + "/children").c_str(), R_OK) == 0,
      "/proc lists children", "/proc does not list children: the process table is scanned instead",
      Status::kWarn));
  findings.push_back(observation(
      "machine.cgroup", cgroup_group_can_be_made(), "a cgroup can be made and killed as one",
      "no writable cgroup: if the tool and its guardian are both killed, trainers are left running",
      Status::kWarn));
  findings.push_back(observation("machine.reflink", clones_files(directory),
                                 "snapshots are clones and cost no space in " + directory.string(),
                                 "snapshots are whole copies in " + directory.string(),
                                 Status::kWarn));
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  findings.push_back(
      {.check = "machine.space",
       .status = error ? Status::kInconclusive : Status::kPass,
       .message = error ? "free space cannot be read: " + error.message()
                        : size_text(space.available) + " free in " + directory.string()});
  findings.push_back(observation(
      "machine.hdf5", ::access((tool_path().parent_path() / "ckptverify-hdf5").c_str(), X_OK) == 0,
      "the HDF5 helper is beside the tool",
      "ckptverify-hdf5 is not beside the tool: HDF5 shards cannot be read", Status::kWarn));
  return findings;
}

/// A word of a command that names a file beside the plan or here: the trainer will not find it.
/// Empty where there is none.
std::string relative_file(const Plan& plan, const std::vector<std::string>& words) {
  std::error_code ignored;
  const fs::path beside = fs::absolute(plan.file, ignored).parent_path();
  for (std::size_t index = 1; index < words.size(); ++index) {
    const fs::path path = words[index];
    if (path.empty() || path.is_absolute() || words[index].front() == '-') continue;
    if (fs::is_regular_file(beside / path, ignored) || fs::is_regular_file(path, ignored)) {
      return words[index];
    }
  }
  return {};
}

Finding examine_command(const Plan& plan, std::string name, const CommandTemplate& command) {
  Finding finding{.check = "plan." + name, .message = ""};
  if (command.empty()) {
    finding.status = Status::kNotObserved;
    finding.message = "no command: what only it can show stays unobserved";
    return finding;
  }
  const Result<std::vector<std::string>> words =
      expand(plan, command, {{"run_dir", "RUN_DIR"}, {"checkpoint", "CHECKPOINT"}, {"step", "0"}});
  const Result<void> program = check_program(plan, command);
  if (!words || !program) {
    finding.status = Status::kFail;
    finding.message = (words ? program.error() : words.error()).text();
    return finding;
  }
  finding.message = shell_text(*words);
  if (const std::string file = relative_file(plan, *words); !file.empty()) {
    finding.status = Status::kWarn;
    finding.message += ": " + file +
                       " is relative, and every phase starts in a directory of its own: begin it "
                       "with {plan_dir}";
  }
  return finding;
}

/// Whether a trainer tells events is seen when it runs; without them the gate can only fail it.
Finding examine_events() {
  return {.check = "plan.events",
          .status = Status::kNotObserved,
          .message =
              "whether the trainer tells events is seen only when it runs; without them no "
              "pass is possible (docs/trainer-contract.md, in C++ or Python)"};
}

/// One path for all saves: which of them is there is known only of a trainer that tells its saves.
Finding examine_checkpoints(const Plan& plan) {
  Finding finding{.check = "plan.checkpoints", .message = plan.checkpoint_pattern};
  if (plan.checkpoint_pattern.find("{step") != std::string::npos) return finding;
  finding.status = Status::kWarn;
  finding.message +=
      ": every save has the same path, without {step}; let the trainer tell its saves by save_end, "
      "or the first file that is there counts as the first save, and its next change as the next";
  return finding;
}

std::string sentence_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "The gate can be run here.";
    case Verdict::kFail:
      return "The gate cannot be run like this.";
    case Verdict::kInconclusive:
      break;
  }
  return "Whether the gate can be run here was not shown.";
}

void print_findings(Verdict verdict, const std::vector<Finding>& findings) {
  constexpr std::size_t kStatusWidth = 13;  // "inconclusive "
  std::size_t check_width = 0;
  for (const Finding& finding : findings) check_width = std::max(check_width, finding.check.size());
  std::cout << verdict_word(verdict) << "  " << sentence_of(verdict) << '\n';
  for (const Finding& finding : findings) {
    const std::string head = "  " + padded(status_name(finding.status), kStatusWidth) +
                             padded(finding.check, check_width) + "  ";
    std::cout << head << wrapped(plain_text(finding.message), head.size()) << '\n';
  }
}

Result<int> run_doctor(const DoctorOptions& options) {
  std::vector<Finding> findings = examine_machine(options.directory);
  if (!options.plan.empty()) {
    CKPTVERIFY_TRY(const auto settings, settings_of(options.settings));
    CKPTVERIFY_TRY(const Plan plan, load_plan(options.plan, settings, tool_path().parent_path()));
    findings.push_back(examine_command(plan, "train", plan.train));
    findings.push_back(examine_command(plan, "resume", plan.resume));
    findings.push_back(examine_command(plan, "eval", plan.eval));
    findings.push_back(examine_checkpoints(plan));
    findings.push_back(examine_events());
  }
  const Verdict verdict = verdict_of(findings);
  if (options.common.output() == Output::kText) {
    print_findings(verdict, findings);
  } else {
    Json::Array rows;
    for (const Finding& finding : findings) {
      rows.push_back(Json::Object{{"id", finding.check},
                                  {"status", status_name(finding.status)},
                                  {"message", finding.message}});
    }
    print_json(Json::Object{{"schema", "ckptverify.doctor/1"},
                            {"verdict", verdict_name(verdict)},
                            {"checks", std::move(rows)}});
  }
  return exit_code(verdict);
}

}  // namespace

void add_doctor(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "doctor", "Say what can be observed on this machine, and of a plan, before anything is run");
  auto options = std::make_shared<DoctorOptions>();
  command->add_option("plan", options->plan, "Plan to examine as well");
  command->add_option("--set", options->settings, "Set a variable of the plan (repeatable)")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--dir", options->directory, "Where run would write")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  add_common_options(*command, options->common, Bulk::kNo);
  command->footer(
      "Exit codes: 0 the gate can be run, 1 it cannot, 2 it could not be told, 64 wrong usage,\n"
      "66 the plan cannot be opened.\n"
      "Examples: ckptverify doctor\n          ckptverify doctor plan.toml --dir /scratch");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_doctor(*options), "doctor", options->common.output());
  });
}

}  // namespace ckptverify::cli
