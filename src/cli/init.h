#pragma once

#include "src/cli/options.h"

namespace ckptverify::cli {

void add_init(CLI::App& application, int& exit_code);

}  // namespace ckptverify::cli
