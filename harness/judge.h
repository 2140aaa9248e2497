// From what was seen to what it means: a pure function, no I/O, no clock. It names causes by their
// effect alone; docs/causes.md has each cause's minimum evidence.
#pragma once

#include <vector>

#include "harness/observations.h"

namespace ckptverify {

struct Judgement {
  std::vector<Finding> findings;  // in order of evidence
  std::vector<IdentityRow> identity;
  std::vector<Curve> curves;
  std::vector<std::string> proven;
  std::vector<std::string> not_proven;
};

Judgement judge(const Plan& plan, const Observations& observations);

}  // namespace ckptverify
