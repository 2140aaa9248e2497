// Words and numbers that all renderings of a report share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/report.h"

namespace ckptverify {

/// One sentence each, for unknown causes too. Of a component that a check of a checkpoint misses,
/// the meaning is that it is absent: what a run would make of that was not seen.
std::string cause_meaning(const Report& report, const Cause& cause);
std::string cause_remedy(const Report& report, const Cause& cause);

/// Whether a run's trainers told nothing, so that its causes rest on files and exits alone.
bool wrote_no_events(const Report& report);

/// "This run does not come back as the same run.", or what the verdict says of a checkpoint.
std::string verdict_sentence(const Report& report);

/// "PASS", "INCONCLUSIVE".
std::string verdict_word(Verdict verdict);

/// "killed after the save at step 5, compared to step 10"; empty where no kill was confirmed.
std::string kill_sentence(const Report& report);

/// "0.25 s", "12.3 s", "4 min 7 s".
std::string duration_text(double seconds);

/// "3.25", at most six significant digits, for people.
std::string figure_text(double value);

/// Control characters and bytes that are no UTF-8, which a trainer's output may hold, as '?';
/// newlines and tabs stay.
std::string printable(std::string_view text);

/// With spaces behind it up to that many columns; a longer text as it is.
std::string padded(std::string_view text, std::size_t width);

/// For 100 columns, the first line as if behind `indent` others. Words from column `indent` on; a
/// longer word than the line is left whole, so that paths and commands can be copied, unless it is
/// longer than those are.
std::string wrapped(std::string_view text, std::size_t indent);

/// "12 pass, 1 fail, 3 not-observed": the statuses that occur, in their order.
std::string status_counts(const std::vector<Finding>& checks);

/// The lines of a text, without their ends.
std::vector<std::string> lines_of(std::string_view text);

}  // namespace ckptverify
