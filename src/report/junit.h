// A report as JUnit XML, the shape that GitLab and the usual GitHub actions show: one test case a
// check. What failed is a failure with its cause as type; what could not be told is an error, which
// is no pass either; what nothing exposes, uses or asks for is skipped. A warning passes and says
// so.
#pragma once

#include <string>

#include "ckptverify/report.h"

namespace ckptverify {

std::string report_junit(const Report& report);

}  // namespace ckptverify
