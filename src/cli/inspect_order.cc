#include "src/cli/inspect_order.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ckptverify::cli {
namespace {

bool is_digit(char character) {
  return character >= '0' && character <= '9';
}

/// The end of the digits that begin at `at`.
std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

int code_of(char character) {
  return static_cast<int>(static_cast<unsigned char>(character));
}

/// A dot ends a name and comes before everything that goes on.
int rank_of(char character) {
  return character == '.' ? -1 : code_of(character);
}

// Of the bytes of a prefix: the text's end is 0, a dot 1; what has no smaller number than its own
// shares that of the next.
constexpr std::uint8_t kDot = 1;
constexpr std::uint8_t kSmallest = 2;
constexpr std::size_t kLongest = 255;

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::size_t first_size = digits_end(a, i) - i;
      const std::size_t second_size = digits_end(b, j) - j;
      if (first_size != second_size) return first_size < second_size;
      const int order = a.substr(i, first_size).compare(b.substr(j, second_size));
      if (order != 0) return order < 0;
      i += first_size;
      j += second_size;
      continue;
    }
    if (a[i] != b[j]) return rank_of(a[i]) < rank_of(b[j]);
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

/// Digits are a '0', how many there are, and themselves.
std::uint64_t natural_prefix(std::string_view text) {
  std::array<std::uint8_t, 8> bytes{};
  std::size_t filled = 0;
  const auto put = [&](std::size_t byte) {
    if (filled < bytes.size()) bytes[filled++] = static_cast<std::uint8_t>(byte);
  };
  for (std::size_t at = 0; at < text.size() && filled < bytes.size();) {
    if (is_digit(text[at])) {
      const std::size_t end = digits_end(text, at);
      put('0');
      put(std::min(end - at, kLongest));
      if (end - at >= kLongest) break;
      for (; at < end; ++at) put(static_cast<unsigned char>(text[at]));
      continue;
    }
    const int code = code_of(text[at]);
    put(text[at] == '.' ? kDot : static_cast<std::size_t>(std::max<int>(code, kSmallest)));
    if (code < kSmallest) break;
    ++at;
  }
  std::uint64_t prefix = 0;
  for (const std::uint8_t byte : bytes) prefix = (prefix << 8) | byte;
  return prefix;
}

}  // namespace ckptverify::cli
