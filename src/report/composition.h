// What the checkpoint at N is made of, from the evidence of the static checks: format, files, whose
// its bytes are, and the entries of each component.
#pragma once

#include <string>

#include "ckptverify/report.h"

namespace ckptverify {

/// Empty where no checkpoint was read.
std::string composition_html(const Report& report);

}  // namespace ckptverify
