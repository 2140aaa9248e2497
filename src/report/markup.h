// Pieces of HTML that the parts of the page share. Everything that came from a trainer, a plan or a
// checkpoint goes through html_escaped().
#pragma once

#include <string>
#include <string_view>

#include "ckptverify/finding.h"

namespace ckptverify {

/// For element content and quoted attributes.
std::string html_escaped(std::string_view text);

/// <tag>text</tag>, the text escaped.
std::string element(std::string_view tag, std::string_view text);

/// The same with a class.
std::string element(std::string_view tag, std::string_view style, std::string_view text);

/// A command line whose short words are not broken at their hyphens.
std::string command_html(std::string_view tag, std::string_view command);

std::string status_mark(Status status);

/// "lr" as "Learning rate"; a metric of another name as it is.
std::string metric_title(std::string_view metric);

/// At most twelve hexadecimal digits of a digest, after its scheme: enough to compare by eye. Other
/// text stays whole.
std::string digest_text(std::string_view digest);

}  // namespace ckptverify
