#include "src/cli/help.h"

#include <algorithm>

namespace ckptverify::cli {
namespace {

/// CLI11 writes a type as "TEXT" or, with a validator behind it, "TEXT:{a,b}".
std::string value_text(const std::string& type) {
  const std::size_t colon = type.find(':');
  std::string name = type.substr(0, colon);
  if (colon != std::string::npos && type[colon + 1] == '{' && type.back() == '}') {
    std::string choices = type.substr(colon + 2, type.size() - colon - 3);
    std::replace(choices.begin(), choices.end(), ',', '|');
    return choices;
  }
  if (name == "UINT" || name == "INT" || name == "FLOAT") return "N";
  return name;
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_type_size() == 0) return "";  // a flag
  if (option->get_positional()) return option->get_required() ? "" : " (may be left out)";
  const bool many = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return " " + value_text(option->get_type_name()) + (many ? " ..." : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string standard = option->get_default_str();
  return option->get_description() + (standard.empty() ? "" : " (default: " + standard + ")");
}

}  // namespace ckptverify::cli
