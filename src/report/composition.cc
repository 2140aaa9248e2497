#include "src/report/composition.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "src/report/markup.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

/// The first check of that name with evidence: the static checks of the checkpoint at N come before
/// those of the one saved again.
const Finding* evidence_of(const Report& report, std::string_view check) {
  for (const Finding& finding : report.checks)
    if (finding.check == check && !finding.evidence.empty()) return &finding;
  return nullptr;
}

std::optional<std::uint64_t> count_in(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return count;
}

/// In the units that the command line speaks.
std::string size_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, "%.1f ", size);
  return text + std::string(kUnits[unit]);
}

struct Owner {
  std::string name;
  std::uint64_t bytes;
};

std::vector<Owner> owners_in(const Finding& coverage) {
  std::vector<Owner> owners;
  for (const Evidence& row : coverage.evidence)
    if (const auto bytes = count_in(row.value); bytes && *bytes > 0)
      owners.push_back({row.name, *bytes});
  return owners;
}

std::string owners_html(const std::vector<Owner>& owners) {
  constexpr std::string_view kStyles = "abcde";  // five kinds of owners: coverage.h
  double total = 0;
  for (const Owner& owner : owners) total += static_cast<double>(owner.bytes);
  if (!(total > 0)) return {};
  std::string bar = "<div class=\"share\">";
  std::string legend = "<p class=\"legend\">";
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::string style(1, kStyles[i % kStyles.size()]);
    const double share = static_cast<double>(owners[i].bytes) / total * 100;
    const std::string per_cent = figure_text(std::round(share * 10) / 10) + '%';
    bar += "<span class=\"" + style + "\" style=\"width:" + per_cent + "\"></span>";
    legend += "<span class=\"key\"><span class=\"swatch " + style + "\"></span>" +
              html_escaped(owners[i].name + " " + size_text(owners[i].bytes) + ", " + per_cent) +
              "</span>";
  }
  return bar + "</div>" + legend + "</p>";
}

std::string components_html(const Finding& components) {
  std::string html = "<div class=\"composition\">";
  for (const Evidence& row : components.evidence) {
    const bool absent = row.value == "absent";
    html += std::string("<div") + (absent ? " class=\"dim\"" : "") + '>' +
            element("span", row.name) + element("span", row.value) + "</div>";
  }
  return html + "</div>";
}

}  // namespace

std::string composition_html(const Report& report) {
  const Finding* readable = evidence_of(report, "static.readable");
  const Finding* coverage = evidence_of(report, "static.coverage");
  const Finding* components = evidence_of(report, "static.components");
  if (readable == nullptr && coverage == nullptr && components == nullptr) return {};
  std::string html = "<h2 id=\"checkpoint\">The checkpoint";
  if (report.command == "run" && report.save_step > 0)
    html += element("small", "of step " + std::to_string(report.save_step));
  html += "</h2>";
  if (readable != nullptr) html += element("p", readable->message);
  if (coverage != nullptr) html += owners_html(owners_in(*coverage));
  if (components != nullptr) html += components_html(*components);
  return html + '\n';
}

}  // namespace ckptverify
