// Parses the command line, calls one subcommand, returns its exit code.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>
#include <memory>
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
    return application.exit(error, std::cout, std::cerr) == 0 ? kExitPass : kExitUsage;
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
