// Checks as the page shows them: those that failed or could not tell in full, all of them by
// family.
#pragma once

#include <string>
#include <vector>

#include "ckptverify/report.h"

namespace ckptverify {

/// An anchor for each check, in their order: two checks of one name get two.
std::vector<std::string> anchors_of(const std::vector<Finding>& checks);

/// What failed, then what could not be told, then what was let pass; empty where there is none.
/// The evidence of `deciding` is unfolded.
std::string open_findings_html(const Report& report, const Finding* deciding);

/// Every check, folded by family; one that open_findings_html() shows is a link to there.
std::string all_checks_html(const Report& report);

/// Lists of sentences: what was proven, and what was not observed.
enum class Folded { kNo, kYes };
std::string sentences_html(std::string_view anchor, std::string_view title,
                           const std::vector<std::string>& sentences, Folded folded);

/// A sentence with what was found and expected below each other, where it says so.
std::string message_html(const std::string& message);

}  // namespace ckptverify
