// The verdict and the causes of a report follow from its checks alone.
#include "ckptverify/report.h"

namespace ckptverify {

void conclude(Report& report) {
  report.verdict = verdict_of(report.checks);
  report.causes = rank_causes(report.checks);
}

}  // namespace ckptverify
