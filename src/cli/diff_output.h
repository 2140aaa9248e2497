// What `diff` says of a comparison: for people a table by component and the worst of each
// component, for programs everything.
#pragma once

#include <string>
#include <vector>

#include "ckptverify/comparison.h"
#include "src/cli/command.h"

namespace ckptverify::cli {

struct DiffText {
  std::string first;  // the paths as they were given
  std::string second;
  Tolerance tolerance = {};
  bool all = false;  // list every difference, not only the worst
};

void print_diff(const Comparison& comparison, const DiffText& how);

Json diff_json(const Comparison& comparison, const std::vector<std::string>& uninterpreted);

}  // namespace ckptverify::cli
