#include "src/report/markup.h"

#include <algorithm>

#include "src/report/words.h"

namespace ckptverify {

std::string html_escaped(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string element(std::string_view tag, std::string_view text) {
  return '<' + std::string(tag) + '>' + html_escaped(text) + "</" + std::string(tag) + '>';
}

std::string element(std::string_view tag, std::string_view style, std::string_view text) {
  return '<' + std::string(tag) + " class=\"" + std::string(style) + "\">" + html_escaped(text) +
         "</" + std::string(tag) + '>';
}

std::string command_html(std::string_view tag, std::string_view command) {
  constexpr std::size_t kWordMax = 28;  // letters of the page's type on a phone's line
  std::string html = '<' + std::string(tag) + '>';
  while (!command.empty()) {
    const std::size_t size = std::min(command.find(' '), command.size());
    const std::string_view word = command.substr(0, size);
    html += size > 0 && size <= kWordMax ? element("span", "word", word) : html_escaped(word);
    command.remove_prefix(size);
    if (command.empty()) break;
    html += ' ';
    command.remove_prefix(1);
  }
  return html + "</" + std::string(tag) + '>';
}

std::string status_mark(Status status) {
  const std::string name(status_name(status));
  return element("span", "status " + name, name);
}

std::string metric_title(std::string_view metric) {
  if (metric == "loss") return "Loss";
  if (metric == "lr") return "Learning rate";
  if (metric == "scale") return "Loss scale";
  if (metric == "grad_norm") return "Gradient norm";
  return std::string(metric);
}

std::string digest_text(std::string_view digest) {
  constexpr std::size_t kDigits = 12;
  const std::size_t colon = digest.find(':');
  if (colon == std::string_view::npos) return std::string(digest);
  return std::string(digest.substr(colon + 1, kDigits));
}

}  // namespace ckptverify
