// The options that every command takes. A subcommand is one pair of files with one function that
// adds it to the application; only those files read CLI11, which is long.
#pragma once

#include "src/cli/command.h"

namespace CLI {
class App;
}

namespace ckptverify::cli {

struct CommonOptions {
  bool json = false;
  unsigned threads = 0;  // 0: one a core

  Output output() const { return json ? Output::kJson : Output::kText; }
};

/// Adds --json, and --threads where the command reads in bulk.
enum class Bulk { kNo, kYes };
void add_common_options(CLI::App& command, CommonOptions& options, Bulk bulk);

}  // namespace ckptverify::cli
