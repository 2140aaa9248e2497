// A report as one HTML page that needs nothing else: no script, no network, light and dark, phone
// and desktop. Everything that came from a trainer, a plan or a checkpoint is escaped.
#pragma once

#include <string>
#include <string_view>

#include "ckptverify/report.h"

namespace ckptverify {

std::string report_html(const Report& report);

}  // namespace ckptverify
