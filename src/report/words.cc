#include "src/report/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "ckptverify/json.h"

namespace ckptverify {
namespace {

constexpr std::size_t kColumns = 100;

const CauseKindRow* row_of(CauseKind kind) {
  const auto rows = cause_kinds();
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [kind](const CauseKindRow& one) { return one.kind == kind; });
  return row == rows.end() ? nullptr : &*row;
}

constexpr std::array kStatuses = {
    Status::kPass,        Status::kFail,          Status::kWarn,    Status::kInconclusive,
    Status::kNotObserved, Status::kNotApplicable, Status::kSkipped, Status::kWaived};

/// The message with a capital and a full stop.
std::string sentence_of(const std::string& message) {
  std::string sentence = message + '.';
  if (sentence[0] >= 'a' && sentence[0] <= 'z') {
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  }
  return sentence;
}

}  // namespace

std::string cause_meaning(const Report& report, const Cause& cause) {
  if (report.command == "check") {
    for (const Finding& finding : report.checks) {
      if (finding.check == "static.components" && finding.cause == cause) {
        return sentence_of(finding.message);
      }
    }
  }
  if (const CauseKindRow* row = row_of(cause.kind)) return std::string(row->meaning);
  for (const Finding& finding : report.checks)
    if (finding.status == Status::kFail && finding.cause == cause)
      return sentence_of(finding.message) + " No known cause has its minimum evidence.";
  const Component component = cause.component.value_or(Component::kOther);
  const std::string where = component == Component::kOther
                                ? std::string("somewhere")
                                : "in the " + std::string(component_name(component)) + " state";
  return "Something is wrong " + where + ", and no known cause has its minimum evidence.";
}

bool wrote_no_events(const Report& report) {
  return std::any_of(report.checks.begin(), report.checks.end(), [](const Finding& finding) {
    return finding.check == "process.trace" && finding.status == Status::kNotObserved;
  });
}

std::string cause_remedy(const Report& report, const Cause& cause) {
  if (const CauseKindRow* row = row_of(cause.kind)) return std::string(row->remedy);
  if (wrote_no_events(report))
    return "Let the trainer tell events, a few lines in C++ or Python "
           "(docs/trainer-contract.md): then the state that is lost is named. Files alone show "
           "what differs in the end, not where it began.";
  return "Begin at the first check that failed: its evidence has what differs, the last lines of "
         "the process's output, or what was not observed and is left to suspect.";
}

namespace {

/// What a checkpoint that passed is by itself: as good as its checksums.
std::string whole_sentence(const Report& report) {
  for (const Finding& finding : report.checks) {
    if (finding.check != "static.checksums") continue;
    if (finding.status == Status::kNotObserved)
      return "This checkpoint is complete; nothing in it would show a changed value.";
    const bool in_part =
        std::any_of(finding.evidence.begin(), finding.evidence.end(),
                    [](const Evidence& evidence) { return evidence.name == "without a checksum"; });
    if (in_part)
      return "This checkpoint is complete; of a part of it nothing would show a changed value.";
  }
  return "By its bytes alone, this checkpoint is whole.";
}

}  // namespace

std::string verdict_sentence(const Report& report) {
  const bool run = report.command == "run";
  switch (report.verdict) {
    case Verdict::kPass:
      if (run) return "If this run dies, it comes back as the same run.";
      return whole_sentence(report);
    case Verdict::kFail:
      return run ? "If this run dies, it does not come back as the same run."
                 : "This checkpoint is damaged or incomplete.";
    case Verdict::kInconclusive:
      break;
  }
  return run ? "Whether this run comes back as the same run was not shown."
             : "Whether this checkpoint is whole was not shown.";
}

std::string verdict_word(Verdict verdict) {
  std::string word(verdict_name(verdict));
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return word;
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  if (result.size() < width) result.append(width - result.size(), ' ');
  return result;
}

std::string kill_sentence(const Report& report) {
  const bool killed =
      std::any_of(report.checks.begin(), report.checks.end(), [](const Finding& finding) {
        return finding.check == "process.kill" && finding.status == Status::kPass;
      });
  if (!killed) return {};
  return "killed after the save at step " + std::to_string(report.save_step) +
         ", compared to step " + std::to_string(report.final_step);
}

std::string duration_text(double seconds) {
  char text[64];
  if (seconds < 10) {
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  } else if (seconds < 120) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else {
    const auto whole = static_cast<long long>(std::llround(seconds));
    std::snprintf(text, sizeof text, "%lld min %lld s", whole / 60, whole % 60);
  }
  return text;
}

std::string figure_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_sequence_size(text);
    const char c = text[0];
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    if (size == 0 || control) {
      clean += '?';
    } else {
      clean += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return clean;
}

namespace {

// Longer than any path of a real file, which people may want to copy whole; names inside of hostile
// checkpoints know no bound.
constexpr std::size_t kWordMax = 400;
constexpr std::size_t kWordEndsShown = 40;

/// The begin and the end of a word that is too long, cut between characters.
std::string bounded(std::string word) {
  if (word.size() <= kWordMax) return word;
  const auto inside = [&word](std::size_t at) {
    return (static_cast<unsigned char>(word[at]) & 0xC0U) == 0x80U;
  };
  std::size_t begin = kWordEndsShown;
  while (begin > 0 && inside(begin)) --begin;
  std::size_t end = word.size() - kWordEndsShown;
  while (end < word.size() && inside(end)) ++end;
  return word.substr(0, begin) + "...(" + std::to_string(word.size()) + " bytes)..." +
         word.substr(end);
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  std::string word;
  const auto flush = [&] {
    if (word.empty()) return;
    word = bounded(std::move(word));
    const bool first = column == indent;
    if (!first && column + 1 + word.size() > kColumns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t')
      flush();
    else
      word += c;
  }
  flush();
  return result;
}

std::string status_counts(const std::vector<Finding>& checks) {
  std::string text;
  for (const Status status : kStatuses) {
    const auto count = std::count_if(checks.begin(), checks.end(),
                                     [status](const Finding& f) { return f.status == status; });
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + ' ' + std::string(status_name(status));
  }
  return text;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return lines;
}

}  // namespace ckptverify
