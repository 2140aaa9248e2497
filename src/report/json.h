// A report as JSON and back: docs/report.schema.json is the contract, docs/report.md explains it.
#pragma once

#include "ckptverify/json.h"
#include "ckptverify/report.h"

namespace ckptverify {

Json report_json(const Report& report);

/// What report_json() wrote. Verdict and causes are taken as they stand, not concluded again; keys
/// that are not known are passed over, so that a newer minor version can still be read.
Result<Report> report_from_json(const Json& json);

}  // namespace ckptverify
