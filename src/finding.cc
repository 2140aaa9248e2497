// Findings and what follows from them: the verdict and the order of the causes.
#include "ckptverify/finding.h"

#include <algorithm>
#include <array>

namespace ckptverify {

namespace {

constexpr std::array<std::string_view, 8> kStatusNames = {
    "pass", "fail", "warn", "inconclusive", "not-observed", "not-applicable", "skipped", "waived",
};

constexpr std::array<std::string_view, 3> kVerdictNames = {"pass", "fail", "inconclusive"};

bool any(std::span<const Finding> findings, Status status) {
  return std::any_of(findings.begin(), findings.end(),
                     [status](const Finding& finding) { return finding.status == status; });
}

}  // namespace

std::string_view status_name(Status status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

Finding finding_of(const Error& error, std::string check) {
  Finding finding{.check = std::move(check),
                  .status = Status::kInconclusive,
                  .subject = error.subject,
                  .message = error.text()};
  if (error.kind == ErrorKind::kMalformed) {
    finding.status = Status::kFail;
    finding.cause = error.cause.value_or(Cause{});
  }
  if (error.offset)
    finding.evidence.push_back({.name = "offset", .value = std::to_string(*error.offset)});
  return finding;
}

std::string_view verdict_name(Verdict verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}

Verdict verdict_of(std::span<const Finding> findings) {
  if (any(findings, Status::kFail)) return Verdict::kFail;
  if (any(findings, Status::kInconclusive)) return Verdict::kInconclusive;
  return Verdict::kPass;
}

std::vector<RankedCause> rank_causes(std::span<const Finding> findings) {
  std::vector<RankedCause> ranked;
  for (const Finding& finding : findings) {
    if (finding.status != Status::kFail || !finding.cause) continue;
    auto row = std::find_if(ranked.begin(), ranked.end(), [&finding](const RankedCause& candidate) {
      return candidate.cause == *finding.cause;
    });
    if (row == ranked.end()) row = ranked.insert(row, {.cause = *finding.cause, .checks = {}});
    if (std::find(row->checks.begin(), row->checks.end(), finding.check) == row->checks.end())
      row->checks.push_back(finding.check);
  }
  // A named kind had its minimum evidence, unknown has none; findings come in order of evidence.
  std::stable_partition(ranked.begin(), ranked.end(), [](const RankedCause& row) {
    return row.cause.kind != CauseKind::kUnknown;
  });
  return ranked;
}

}  // namespace ckptverify
