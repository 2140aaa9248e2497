#include "ckptverify/count_text.h"

namespace ckptverify {
namespace {

std::string plural(std::string_view noun) {
  std::string text(noun);
  const bool vowel_before =
      text.size() < 2 || std::string_view("aeiou").find(text.end()[-2]) != std::string_view::npos;
  if (text.ends_with('y') && !vowel_before) return text.substr(0, text.size() - 1) + "ies";
  return text + (text.ends_with('s') ? "es" : "s");
}

}  // namespace

std::string count_text(std::uint64_t count, std::string_view one, std::string_view many) {
  const std::string number = std::to_string(count) + ' ';
  if (count == 1) return number + std::string(one);
  return number + (many.empty() ? plural(one) : std::string(many));
}

}  // namespace ckptverify
