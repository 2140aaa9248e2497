// `ckptverify init`: a commented plan for a trainer that takes its arguments on the command line.
#include "src/cli/init.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/tokenizer.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include "ckptverify/plan.h"
#include "harness/program.h"

namespace ckptverify::cli {
namespace {

struct InitOptions {
  Output output() const { return json ? Output::kJson : Output::kText; }

  bool json = false;
  std::string out = "plan.toml";
  std::string name = "trainer";
  std::vector<std::string> train;
  std::vector<std::string> resume;
  std::vector<std::string> eval;
  std::string checkpoint = "{run_dir}/checkpoints/step-{step}";
  std::uint64_t save = 5;
  std::uint64_t final = 10;
  std::uint64_t horizon = 0;
};

/// A TOML basic string.
std::string quoted(const std::string& text) {
  return Json(text).text();
}

std::string array_text(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words) text += (text.size() > 1 ? ", " : "") + quoted(word);
  return text + "]";
}

constexpr const char* kHead =
    "# A plan for `ckptverify run`: what to start, where checkpoints appear, what is compared.\n"
    "# Every phase starts in a directory of its own: begin what lies beside this file with\n"
    "# {plan_dir}; a program without a '/' is looked up in PATH.\n"
    "# Placeholders: {run_dir} a fresh directory a phase, {checkpoint} what to restore, {step},\n"
    "# {seed}, {plan_dir}, {tool_dir}, and every name of [variables]. docs/plan.md has all keys.\n"
    "schema = \"ckptverify.plan/1\"\n";

constexpr const char* kTail =
    "\n# The same in all phases. One thread makes most CPU trainers deterministic.\n"
    "[environment]\nOMP_NUM_THREADS = \"1\"\n\n"
    "# Exact by default. Loosen only where the trainer is known to be noisy:\n"
    "# [tolerance.metrics.loss]\n# relative = 1e-6\n\n"
    "# Seconds. A deadline that passes is a verdict, never a hang.\n"
    "[deadlines]\nstart_s = 120\nstep_s = 300\nrestore_s = 300\neval_s = 300\n";

std::string commands_text(const InitOptions& options) {
  std::string text =
      "[commands]\n"
      "# Trains from the start. Its schedule's horizon must be the same in every phase.\n"
      "train = " +
      array_text(options.train) +
      "\n# Restores {checkpoint} in a fresh process and goes on.\nresume = " +
      array_text(options.resume) + "\n";
  if (!options.eval.empty()) return text + "eval = " + array_text(options.eval) + "\n";
  return text +
         "# Evaluates {checkpoint} in a fresh process; without it that stays unobserved.\n"
         "# eval = [\"{plan_dir}/trainer\", \"eval\", \"--checkpoint\", \"{checkpoint}\"]\n";
}

std::string plan_text(const InitOptions& options) {
  const std::uint64_t horizon = options.horizon == 0 ? options.final + 2 : options.horizon;
  return kHead + ("name = " + quoted(options.name)) +
         "\n\n# Defaults that `--set name=value` overrides; use them in commands as {name}.\n"
         "[variables]\n\n" +
         commands_text(options) + "\n[checkpoints]\npath = " + quoted(options.checkpoint) +
         "\n\n[steps]\n# N: saved, killed, restored. N + M: compared with the run that never "
         "died.\n"
         "save = " +
         std::to_string(options.save) + "\nfinal = " + std::to_string(options.final) +
         "\n# The last step of the trainer's own schedule, beyond `final`.\nhorizon = " +
         std::to_string(horizon) + "\n" + kTail;
}

/// "plan-2.toml" for "plan.toml": the first such name that is free.
std::string free_name(const std::filesystem::path& taken) {
  std::error_code error;
  for (int number = 2;; ++number) {
    std::filesystem::path name = taken.stem().string() + "-" + std::to_string(number);
    name += taken.extension();
    const std::filesystem::path path = taken.parent_path() / name;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      return path.string();
    }
  }
}

Result<void> write_new(const std::string& path, const std::string& text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0 && errno == EEXIST) {
    return Error{
        ErrorKind::kUsage,
        "exists already and is left as it is; expected a new name, such as " + free_name(path),
        path};
  }
  if (descriptor < 0) {
    return Error{ErrorKind::kUsage, std::string("cannot be created: ") + std::strerror(errno),
                 path};
  }
  const bool whole =
      ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (::close(descriptor) != 0 || !whole) {
    ::unlink(path.c_str());
    return Error{ErrorKind::kUsage, "cannot be written whole", path};
  }
  return {};
}

/// The plan as it was written; what is no plan is not left behind.
Result<Plan> read_back(const std::string& path) {
  Result<Plan> plan = load_plan(path, {}, tool_path().parent_path());
  if (plan) return plan;
  ::unlink(path.c_str());
  return Error{ErrorKind::kUsage, plan.error().message + "; nothing was written", path};
}

/// What still keeps the plan from being run, as far as only the plan can say: a program that is
/// not there yet is no mistake of the plan. Empty where it can be run.
std::string mistake_of(const Plan& plan) {
  const Result<void> programs = check_programs(plan);
  if (programs || programs.error().kind != ErrorKind::kUsage) return {};
  return programs.error().text();
}

/// A command that was given in quotes as one word, into its words, as a shell would; one that names
/// a program whose path has spaces stays.
void split(std::vector<std::string>& command) {
  if (command.size() != 1 || command.front().find_first_of(" \t") == std::string::npos) return;
  std::error_code ignored;
  if (std::filesystem::exists(command.front(), ignored)) return;
  const boost::escaped_list_separator<char> shell("", " \t", "\"'");
  const boost::tokenizer<boost::escaped_list_separator<char>> tokens(command.front(), shell);
  std::vector<std::string> words;
  for (const std::string& word : tokens)
    if (!word.empty()) words.push_back(word);
  command = std::move(words);
}

Result<int> run_init(InitOptions options) {
  for (auto* command : {&options.train, &options.resume, &options.eval}) split(*command);
  if (options.train.empty()) {
    options.train = {"{plan_dir}/trainer", "train", "--run-dir", "{run_dir}"};
  }
  if (options.resume.empty()) {
    options.resume = options.train;
    options.resume.insert(options.resume.end(), {"--resume", "{checkpoint}"});
  }
  const std::string text = plan_text(options);
  CKPTVERIFY_TRY_VOID(write_new(options.out, text));
  CKPTVERIFY_TRY(const Plan plan, read_back(options.out));
  const std::string mistake = mistake_of(plan);
  const int code = mistake.empty() ? kExitPass : kExitFail;
  if (options.output() == Output::kJson) {
    print_json(Json::Object{{"schema", "ckptverify.init/1"},
                            {"path", options.out},
                            {"plan", text},
                            {"mistake", mistake}});
    return code;
  }
  std::cout << "wrote " << options.out << '\n';
  if (!mistake.empty()) {
    std::cout << "it cannot be run yet: " << mistake << '\n';
  } else {
    std::cout << "next: ckptverify doctor " << options.out << "\n      ckptverify run "
              << options.out << '\n';
  }
  return code;
}

}  // namespace

void add_init(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand("init", "Write a commented plan for a trainer");
  auto options = std::make_shared<InitOptions>();
  command->add_option("out", options->out, "File to create")->capture_default_str();
  command->add_option("--name", options->name, "What reports call the trainer")
      ->capture_default_str();
  const auto words = [command](const char* name, std::vector<std::string>& into,
                               const char* description) {
    command->add_option(name, into, description)->type_name("WORD")->expected(1, -1);
  };
  words("--train", options->train, "Words of the command that trains");
  words("--resume", options->resume, "Words of the command that restores {checkpoint}");
  words("--eval", options->eval, "Words of the command that evaluates {checkpoint}");
  command->add_option("--checkpoint", options->checkpoint, "Where checkpoints appear")
      ->capture_default_str();
  command->add_option("--save", options->save, "N: the save that is restored")
      ->capture_default_str();
  command->add_option("--final", options->final, "N + M: the save that is compared")
      ->capture_default_str();
  command->add_option("--horizon", options->horizon, "Last step of the trainer's schedule");
  command->add_flag("--json", options->json, "Print one JSON object: path, plan, mistake");
  command->footer(
      "A command is given in quotes, or word by word; a word of its own that begins with a dash\n"
      "needs the form --train=WORD.\n"
      "Examples: ckptverify init\n"
      "          ckptverify init gate.toml --train 'python3 {plan_dir}/train.py --out {run_dir}' "
      "\\\n"
      "            --resume 'python3 {plan_dir}/train.py --out {run_dir} --from {checkpoint}'\n"
      "          ckptverify init gate.toml --train {plan_dir}/trainer train {run_dir} --save 100 "
      "--final 120");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_init(*options), "init", options->output());
  });
}

}  // namespace ckptverify::cli
