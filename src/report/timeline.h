// The phases of a run over time: one lane a process tree, how it ended, what it was called with.
#pragma once

#include <string>

#include "ckptverify/report.h"

namespace ckptverify {

/// Empty where no phase ran.
std::string timeline_html(const Report& report);

}  // namespace ckptverify
