// Parses the command line, calls one subcommand, returns its exit code.
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <string_view>

#include "harness/guardian.h"
#include "src/cli/check.h"
#include "src/cli/command.h"
#include "src/cli/diff.h"
#include "src/cli/doctor.h"
#include "src/cli/formats.h"
#include "src/cli/hash.h"
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

/// A mapped file that shrinks, or whose disk fails, faults wherever its bytes are next read. That
/// is the input's fault; any other bus error is ours and ends the process as usual.
void end_on_lost_bytes(int /*number*/, siginfo_t* details, void* /*context*/) {
  if (details->si_code != BUS_ADRERR) return;  // faults again, without this handler
  constexpr std::string_view kMessage =
      "ckptverify: a file shrank, or its disk failed, while it was read\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kExitNoInput);
}

void watch_for_lost_bytes() {
  struct sigaction action {};
  action.sa_sigaction = end_on_lost_bytes;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace
}  // namespace ckptverify::cli

int main(int argc, char** argv) {
  // The tool starts itself as the guardian of a trainer's processes; people never do.
  if (argc > 1 && std::string_view(argv[1]) == "guardian") {
    return ckptverify::guardian_main(argc - 1, argv + 1);
  }
  ckptverify::cli::watch_for_lost_bytes();
  try {
    return ckptverify::cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "ckptverify: out of memory\n";
    return ckptverify::cli::kExitInconclusive;
  } catch (const std::exception& error) {
    std::cerr << "ckptverify: unexpected exception, a bug of ours: " << error.what() << '\n';
    return 70;
  }
}
