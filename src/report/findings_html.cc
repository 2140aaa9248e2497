#include "src/report/findings_html.h"

#include <algorithm>
#include <set>

#include "ckptverify/count_text.h"
#include "src/report/markup.h"
#include "src/report/reason.h"
#include "src/report/words.h"

namespace ckptverify {
namespace {

struct Family {
  std::string_view prefix;
  std::string_view title;
};

constexpr Family kFamilies[] = {
    {"process", "Processes, kill and restore"},
    {"static", "The checkpoint by its bytes alone"},
    {"identity", "The state: live = disk = restored"},
    {"restore", "The restored step"},
    {"data", "The next batch"},
    {"rng", "Sources of random numbers"},
    {"trajectory", "Step by step"},
    {"eval", "Evaluation"},
    {"final", "The checkpoint at the end"},
    {"resave", "Saved again after the restore"},
    {"noise", "Noise between two uninterrupted runs"},
    {"plan", "The plan"},
    {"verdict", "What a pass needs"},
};

std::string_view family_of(const Finding& finding) {
  const std::string_view check = finding.check;
  return check.substr(0, check.find('.'));
}

std::string title_of(std::string_view family) {
  for (const Family& row : kFamilies)
    if (row.prefix == family) return std::string(row.title);
  return std::string(family);
}

std::string evidence_list(const Finding& finding) {
  std::string html = "<dl class=\"values\">";
  for (const Evidence& row : finding.evidence) {
    const bool lines = row.value.find('\n') != std::string::npos;
    html += lines ? element("dt", "lines", row.name) + "<dd class=\"lines\">" +
                        element("pre", row.value) + "</dd>"
                  : element("dt", row.name) + element("dd", row.value);
  }
  return html + "</dl>";
}

std::string folded_evidence(const Finding& finding) {
  if (finding.evidence.empty()) return {};
  return "<details class=\"evidence\"><summary>evidence</summary>" + evidence_list(finding) +
         "</details>";
}

bool is_open(Status status) {
  return status == Status::kFail || status == Status::kInconclusive || status == Status::kWarn ||
         status == Status::kWaived;
}

struct Place {
  std::string anchor;
  bool several_causes;
  bool deciding;
};

std::string open_finding(const Finding& finding, const Place& place) {
  std::string html = "<div class=\"finding " + std::string(status_name(finding.status)) +
                     "\" id=\"" + place.anchor + "\"><div class=\"head\">" +
                     status_mark(finding.status) + element("code", finding.check);
  if (finding.cause && place.several_causes) html += element("small", finding.cause->id());
  html += "</div><div>" + message_html(finding.message);
  if (!finding.evidence.empty())
    html += place.deciding ? evidence_list(finding) : folded_evidence(finding);
  return html + "</div></div>\n";
}

std::string check_row(const Finding& finding, const std::string& anchor) {
  std::string html = "<div class=\"check\"";
  if (is_open(finding.status))
    return html + '>' + status_mark(finding.status) + "<a class=\"mono\" href=\"#" + anchor +
           "\">" + html_escaped(finding.check) + "</a><span class=\"what dim\">above</span></div>";
  return html + " id=\"" + anchor + "\">" + status_mark(finding.status) +
         element("code", finding.check) + "<div class=\"what\">" + html_escaped(finding.message) +
         folded_evidence(finding) + "</div></div>";
}

std::string family_html(std::string_view family, const std::vector<Finding>& checks,
                        const std::vector<std::string>& anchors) {
  std::vector<Finding> members;
  std::string rows;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (family_of(checks[i]) != family) continue;
    members.push_back(checks[i]);
    rows += check_row(checks[i], anchors[i]);
  }
  return "<details class=\"family\"><summary>" + html_escaped(title_of(family)) + " <small>" +
         html_escaped(status_counts(members)) + "</small></summary>" + rows + "</details>\n";
}

}  // namespace

std::vector<std::string> anchors_of(const std::vector<Finding>& checks) {
  std::set<std::string> taken;
  std::vector<std::string> anchors;
  for (const Finding& finding : checks) {
    std::string name = "check-";
    for (const char c : finding.check) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '_';
      name += plain ? c : '-';
    }
    std::string anchor = name;
    for (int i = 2; !taken.insert(anchor).second; ++i) anchor = name + "--" + std::to_string(i);
    anchors.push_back(std::move(anchor));
  }
  return anchors;
}

std::string message_html(const std::string& message) {
  const auto parts = found_expected(message);
  if (!parts) return element("p", message);
  const std::string html = element("p", parts->before) + "<dl class=\"values pair\"><div>" +
                           element("dt", "found") + ' ' + element("dd", "found", parts->found) +
                           "</div> <div>" + element("dt", "expected") + ' ' +
                           element("dd", "expected", parts->expected) + "</div></dl>";
  return parts->after.empty() ? html : html + element("p", parts->after);
}

std::string open_findings_html(const Report& report, const Finding* deciding) {
  struct Group {
    Status status;
    std::string_view anchor;
    std::string_view title;
  };
  constexpr Group kGroups[] = {{Status::kFail, "failed", "What failed"},
                               {Status::kInconclusive, "open", "What could not be told"},
                               {Status::kWarn, "warnings", "Warnings"},
                               {Status::kWaived, "waived", "Waived by the plan"}};
  const std::vector<std::string> anchors = anchors_of(report.checks);
  std::string html;
  for (const Group& group : kGroups) {
    std::string items;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < report.checks.size(); ++i) {
      const Finding& finding = report.checks[i];
      if (finding.status != group.status) continue;
      ++count;
      items += open_finding(finding, {.anchor = anchors[i],
                                      .several_causes = report.causes.size() > 1,
                                      .deciding = &finding == deciding});
    }
    if (count == 0) continue;
    html += "<h2 id=\"" + std::string(group.anchor) + "\">" + std::string(group.title) +
            element("small", count_text(count, "check")) + "</h2>" + items;
  }
  return html;
}

std::string all_checks_html(const Report& report) {
  if (report.checks.empty()) return {};
  const std::vector<std::string> anchors = anchors_of(report.checks);
  std::string html =
      "<h2 id=\"checks\">All checks" + element("small", status_counts(report.checks)) + "</h2>\n";
  std::set<std::string_view> done;
  for (const Finding& finding : report.checks)
    if (const std::string_view family = family_of(finding); done.insert(family).second)
      html += family_html(family, report.checks, anchors);
  return html;
}

std::string sentences_html(std::string_view anchor, std::string_view title,
                           const std::vector<std::string>& sentences, Folded folded) {
  if (sentences.empty()) return {};
  std::string list = "<ul>";
  for (const std::string& sentence : sentences) list += element("li", sentence);
  list += "</ul>";
  if (folded == Folded::kYes)
    list = "<details><summary>" + count_text(sentences.size(), "sentence") + "</summary>" + list +
           "</details>";
  return "<h2 id=\"" + std::string(anchor) + "\">" + std::string(title) + "</h2>" + list + '\n';
}

}  // namespace ckptverify
