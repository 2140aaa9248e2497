// A report for a terminal: verdict and cause first, then what was proven, the checks, the evidence
// of those that failed, where the files are and how to repeat it. 100 columns.
#pragma once

#include <string>

#include "ckptverify/report.h"

namespace ckptverify {

enum class Colour { kOff, kOn };

std::string report_console(const Report& report, Colour colour);

}  // namespace ckptverify
