#pragma once

#include "src/cli/command.h"

namespace ckptverify::cli {

void add_doctor(CLI::App& application, int& exit_code);

}  // namespace ckptverify::cli
