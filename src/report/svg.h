// The page's drawings: curves of both runs with the kill marked, and the timeline of phases.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/report.h"

namespace ckptverify {

/// For element content and quoted attributes.
std::string html_escaped(std::string_view text);

/// All curves of one metric in one drawing; points that are not finite are left out.
std::string curves_svg(const std::vector<Curve>& curves, const std::string& metric,
                       std::uint64_t kill_step);

/// One bar a phase over the time since the command began.
std::string timeline_svg(const std::vector<PhaseRecord>& phases);

}  // namespace ckptverify
