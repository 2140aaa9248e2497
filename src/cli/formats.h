#pragma once

#include "src/cli/options.h"

namespace ckptverify::cli {

void add_formats(CLI::App& application, int& exit_code);

}  // namespace ckptverify::cli
