// Parses the command line, calls one subcommand, returns its exit code.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "harness/guardian.h"
#include "src/cli/check.h"
#include "src/cli/command.h"
#include "src/cli/diff.h"
#include "src/cli/doctor.h"
#include "src/cli/formats.h"
#include "src/cli/hash.h"
#include "src/cli/help.h"
#include "src/cli/init.h"
#include "src/cli/inspect.h"
#include "src/cli/run.h"

namespace ckptverify::cli {
namespace {

/// The error of a command line, worded as every other error, and as JSON too where that was asked
/// for: a program that reads the output must not find it empty.
int code_of_parse_error(const CLI::App& application, const CLI::ParseError& error,
                        std::span<char* const> arguments) {
  const auto is_json = [](std::string_view argument) { return argument == "--json"; };
  const bool json = std::any_of(arguments.begin(), arguments.end(), is_json);
  const auto chosen = application.get_subcommands();
  std::string command = "ckptverify";
  std::string message = error.what();
  if (!chosen.empty()) {
    command = chosen.front()->get_name();
  } else if (arguments.size() > 1 && *arguments[1] != '-') {
    message = "found '" + plain_text(arguments[1]) + "', expected a command (see --help)";
  }
  if (command == "init" && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    message += "; put a command in quotes: --train 'python3 train.py --run-dir {run_dir}'";
  }
  const Result<int> result = Error{ErrorKind::kUsage, message, chosen.empty() ? "" : command};
  const int code = code_of(result, command, json ? Output::kJson : Output::kText);
  std::cerr << "Run with --help for more information.\n";
  return code;
}

int run_command_line(int argc, char** argv) {
  CLI::App application(
      "Proves that a training run which dies comes back as the same run, and reads its checkpoints "
      "without the program that wrote them.",
      "ckptverify");
  application.formatter(std::make_shared<HelpFormatter>());  // before what inherits it
  application.require_subcommand(1);
  application.set_version_flag("--version", "ckptverify " CKPTVERIFY_VERSION);
  application.footer(
      "Exit codes: 0 pass, 1 fail, 2 inconclusive, 64 wrong usage, 66 input cannot be opened,\n"
      "70 a bug of ours. `ckptverify COMMAND --help` has examples.");
  int code = kExitPass;
  add_run(application, code);
  add_check(application, code);
  add_inspect(application, code);
  add_hash(application, code);
  add_diff(application, code);
  add_init(application, code);
  add_doctor(application, code);
  add_formats(application, code);
  try {
    application.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return application.exit(error, std::cout, std::cerr);  // --help
    return code_of_parse_error(application, error, std::span(argv, static_cast<std::size_t>(argc)));
  }
  return code;
}

/// Where a parent closed one of the three, a file of ours would get its number, and what is printed
/// would go there.
void open_standard_descriptors() {
  int descriptor = 0;
  do {
    descriptor = ::open("/dev/null", O_RDWR);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

/// What was asked for and could not be printed is not a success.
int code_once_printed(int code) {
  std::cout.flush();
  if (std::cout) return code;
  std::cerr << "ckptverify: standard output cannot be written to\n";
  return code == kExitPass ? kExitInconclusive : code;
}

int code_of_exception(const std::exception& exception) {
  const auto* of_system = dynamic_cast<const std::system_error*>(&exception);
  if (of_system != nullptr &&
      of_system->code() == std::make_error_code(std::errc::resource_unavailable_try_again)) {
    std::cerr << "ckptverify: a thread cannot be started: " << of_system->code().message()
              << "; found a limit of processes or memory reached (ulimit -u, -v, the cgroup's "
                 "pids.max), expected room for one thread more\n";
    return kExitNoInput;
  }
  std::cerr << "ckptverify: unexpected exception, a bug of ours: " << exception.what() << '\n';
  return 70;
}

}  // namespace
}  // namespace ckptverify::cli

int main(int argc, char** argv) {
  // The tool starts itself as the guardian of a trainer's processes; people never do.
  if (argc > 1 && std::string_view(argv[1]) == "guardian") {
    return ckptverify::guardian_main(argc - 1, argv + 1);
  }
  ckptverify::cli::open_standard_descriptors();
  ::signal(SIGXFSZ, SIG_IGN);  // a file too large is an error that is told, not our end
  try {
    return ckptverify::cli::code_once_printed(ckptverify::cli::run_command_line(argc, argv));
  } catch (const std::bad_alloc&) {
    std::cerr << "ckptverify: out of memory\n";
    return ckptverify::cli::kExitInconclusive;
  } catch (const std::exception& error) {
    return ckptverify::cli::code_of_exception(error);
  }
}
