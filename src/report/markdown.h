// A report as GitHub's and GitLab's Markdown, for a pull request or a step summary: verdict, cause
// and remedy, the checks that failed or could not tell, and the rest folded.
#pragma once

#include <string>
#include <string_view>

#include "ckptverify/report.h"

namespace ckptverify {

std::string report_markdown(const Report& report);

/// One line of text in which nothing is markup, a mention or the end of a table's cell.
std::string markdown_escaped(std::string_view text);

/// The text as a code span. In a table's cell a bar needs a backslash, elsewhere that would show.
enum class Place { kText, kCell };
std::string markdown_code(std::string_view text, Place place = Place::kText);

}  // namespace ckptverify
