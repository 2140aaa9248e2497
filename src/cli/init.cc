// `ckptverify init`: a commented plan for a trainer that takes its arguments on the command line.
#include "src/cli/init.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include "ckptverify/plan.h"

namespace ckptverify::cli {
namespace {

struct InitOptions {
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

std::string plan_text(const InitOptions& options) {
  std::string text =
      "# A plan for `ckptverify run`: what to start, where checkpoints appear, what is compared.\n"
      "# Placeholders: {run_dir} a fresh directory a phase, {checkpoint} what to restore, {step},\n"
      "# {seed}, {plan_dir}, {tool_dir}, and every name of [variables]. docs/plan.md has all "
      "keys.\n"
      "schema = \"ckptverify.plan/1\"\n"
      "name = " +
      quoted(options.name) +
      "\n\n"
      "# Defaults that `--set name=value` overrides; use them in commands as {name}.\n"
      "[variables]\n\n"
      "[commands]\n"
      "# Trains from the start. Its schedule's horizon must be the same in every phase.\n"
      "train = " +
      array_text(options.train) +
      "\n"
      "# Restores {checkpoint} in a fresh process and goes on.\n"
      "resume = " +
      array_text(options.resume) + "\n";
  if (options.eval.empty()) {
    text +=
        "# Evaluates {checkpoint} in a fresh process; without it that stays unobserved.\n"
        "# eval = [\"./trainer\", \"eval\", \"--checkpoint\", \"{checkpoint}\"]\n";
  } else {
    text += "eval = " + array_text(options.eval) + "\n";
  }
  text +=
      "\n[checkpoints]\npath = " + quoted(options.checkpoint) +
      "\n\n[steps]\n# N: saved, killed, restored. N + M: compared with the run that never died.\n"
      "save = " +
      std::to_string(options.save) + "\nfinal = " + std::to_string(options.final) +
      "\n# The last step of the trainer's own schedule, beyond `final`.\nhorizon = " +
      std::to_string(options.horizon == 0 ? options.final + 2 : options.horizon) +
      "\n\n# The same in all phases. One thread makes most CPU trainers deterministic.\n"
      "[environment]\nOMP_NUM_THREADS = \"1\"\n\n"
      "# Exact by default. Loosen only where the trainer is known to be noisy:\n"
      "# [tolerance.metrics.loss]\n# relative = 1e-6\n\n"
      "# Seconds. A deadline that passes is a verdict, never a hang.\n"
      "[deadlines]\nstart_s = 120\nstep_s = 300\nrestore_s = 300\neval_s = 300\n";
  return text;
}

Result<void> write_new(const std::string& path, const std::string& text) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
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

Result<int> run_init(InitOptions options) {
  if (options.train.empty()) options.train = {"./trainer", "train", "--run-dir", "{run_dir}"};
  if (options.resume.empty()) {
    options.resume = options.train;
    options.resume.insert(options.resume.end(), {"--resume", "{checkpoint}"});
  }
  CKPTVERIFY_TRY_VOID(write_new(options.out, plan_text(options)));
  // What we wrote must be a plan; if the steps given are not, the file says so to its reader.
  const Result<Plan> plan = load_plan(options.out, {}, tool_path().parent_path());
  std::cout << "wrote " << options.out << '\n';
  if (!plan) {
    std::cout << "it is not a valid plan yet: " << plan.error().text() << '\n';
    return kExitFail;
  }
  std::cout << "next: ckptverify doctor " << options.out << "\n      ckptverify run " << options.out
            << '\n';
  return kExitPass;
}

}  // namespace

void add_init(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand("init", "Write a commented plan for a trainer");
  auto options = std::make_shared<InitOptions>();
  command->add_option("out", options->out, "File to create")->capture_default_str();
  command->add_option("--name", options->name, "What reports call the trainer")
      ->capture_default_str();
  command->add_option("--train", options->train, "Words of the command that trains")
      ->expected(1, -1);
  command
      ->add_option("--resume", options->resume, "Words of the command that restores {checkpoint}")
      ->expected(1, -1);
  command->add_option("--eval", options->eval, "Words of the command that evaluates {checkpoint}")
      ->expected(1, -1);
  command->add_option("--checkpoint", options->checkpoint, "Where checkpoints appear")
      ->capture_default_str();
  command->add_option("--save", options->save, "N: the save that is restored")
      ->capture_default_str();
  command->add_option("--final", options->final, "N + M: the save that is compared")
      ->capture_default_str();
  command->add_option("--horizon", options->horizon, "Last step of the trainer's schedule");
  command->footer(
      "Words that begin with a dash need the form --train=WORD, or edit the file afterwards.\n"
      "Examples: ckptverify init\n"
      "          ckptverify init gate.toml --train ./trainer train {run_dir} --save 100 --final "
      "120");
  command->callback([options, &exit_code] {
    const Result<int> code = run_init(*options);
    exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace ckptverify::cli
