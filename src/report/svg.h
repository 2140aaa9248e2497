// The page's drawings: curves of both runs with the kill marked, on axes with round ticks.
#pragma once

#include <string>
#include <vector>

#include "ckptverify/report.h"

namespace ckptverify {

/// Round numbers inside [low, high]: at most `count` of them, 1, 2 or 5 times a power of ten apart.
/// The two ends where there is no room for a round one.
std::vector<double> round_ticks(double low, double high, int count);

/// All curves of one metric in one drawing. A point that is not finite is written at the top edge
/// as what it is; `parted_step` is where the runs part, 0 where they do not.
struct CurveMarks {
  std::uint64_t kill_step = 0;
  std::uint64_t parted_step = 0;
};
std::string curves_svg(const std::vector<Curve>& curves, const std::string& metric,
                       CurveMarks marks);

}  // namespace ckptverify
