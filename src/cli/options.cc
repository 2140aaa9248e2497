#include "src/cli/options.h"

#include <CLI/CLI.hpp>

namespace ckptverify::cli {

void add_common_options(CLI::App& command, CommonOptions& options, Bulk bulk) {
  command.add_flag("--json", options.json, "Print one JSON object instead of text");
  if (bulk == Bulk::kYes) {
    command.add_option("--threads", options.threads, "Threads that read and hash; 0 is one a core")
        ->check(CLI::Range(0U, 1024U))
        ->capture_default_str();
  }
}

}  // namespace ckptverify::cli
