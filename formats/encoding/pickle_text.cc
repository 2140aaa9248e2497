#include "formats/encoding/pickle_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>

namespace ckptverify {
namespace {

// Decimal text is converted in quadratic time; Python itself refuses more digits than this.
constexpr std::size_t kDigitsMax = 4300;

Error malformed(std::string message) {
  return {.message = std::move(message), .cause = Cause{CauseKind::kBitrot}};
}

void append_utf8(std::string& text, std::uint32_t point) {
  const auto put = [&](std::uint32_t bits) { text += static_cast<char>(bits); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | (point >> 6));
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3f));
    put(0x80 | ((point >> 6) & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

/// Most characters are: they need no decoding.
bool is_ascii(char character) {
  return static_cast<std::uint8_t>(character) < 0x80;
}

/// The code point at `at`, which moves past it; nothing where it is malformed.
std::optional<std::uint32_t> next_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < size) return std::nullopt;
  std::uint32_t point = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return std::nullopt;
    point = (point << 6) | (byte(at + i) & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[size] || point > 0x10ffff) return std::nullopt;
  at += size;
  return point;
}

Value integer_of_magnitude(bool negative, std::vector<std::byte> big_endian) {
  const auto first = std::find_if(big_endian.begin(), big_endian.end(),
                                  [](std::byte b) { return b != std::byte{0}; });
  big_endian.erase(big_endian.begin(), first);
  if (big_endian.size() <= 8) {
    std::uint64_t magnitude = 0;
    for (const std::byte b : big_endian) {
      magnitude = (magnitude << 8) | std::to_integer<std::uint64_t>(b);
    }
    constexpr std::uint64_t kLimit = 1ULL << 63;
    if (magnitude < kLimit || (negative && magnitude == kLimit)) {
      return static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude);
    }
  }
  return BigInteger{negative, std::move(big_endian)};
}

}  // namespace

bool is_utf8(std::string_view text, Surrogates surrogates) {
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      ++at;
      continue;
    }
    const auto point = next_point(text, at);
    if (!point) return false;
    if (surrogates == Surrogates::kRefused && *point >= 0xd800 && *point < 0xe000) return false;
  }
  return true;
}

Result<std::vector<std::byte>> latin1_of_utf8(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (is_ascii(text[at])) {
      bytes.push_back(static_cast<std::byte>(text[at++]));
      continue;
    }
    const auto point = next_point(text, at);
    if (!point || *point > 0xff) {
      return malformed("text is no Latin-1; found code point " + std::to_string(point.value_or(0)) +
                       ", expected at most 255");
    }
    bytes.push_back(static_cast<std::byte>(*point));
  }
  return bytes;
}

Value integer_of_bytes(Bytes bytes) {
  std::vector<std::byte> magnitude(bytes.rbegin(), bytes.rend());
  const bool negative = !magnitude.empty() && (magnitude[0] & std::byte{0x80}) != std::byte{0};
  if (negative) {
    for (std::byte& b : magnitude) b = ~b;
    for (auto b = magnitude.rbegin(); b != magnitude.rend(); ++b) {
      *b = static_cast<std::byte>(std::to_integer<unsigned>(*b) + 1);
      if (*b != std::byte{0}) break;
    }
    // -2^(8n) of all zero bytes cannot be: the sign bit was set, so the magnitude is not 0.
  }
  return integer_of_magnitude(negative, std::move(magnitude));
}

Result<Value> integer_of_text(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative || text.starts_with('+') ? 1 : 0);
  if (digits.empty() || digits.size() > kDigitsMax ||
      digits.find_first_not_of("0123456789") != std::string_view::npos) {
    return malformed("pickle integer is no decimal number; found \"" +
                     std::string(text.substr(0, 40)) + "\"");
  }
  std::vector<std::byte> little;  // magnitude, grown by nine digits at a time
  for (std::size_t at = 0; at < digits.size();) {
    std::uint64_t carry = 0;
    std::uint64_t scale = 1;
    for (const std::size_t end = std::min(digits.size(), at + 9); at < end; ++at) {
      carry = carry * 10 + static_cast<std::uint64_t>(digits[at] - '0');
      scale *= 10;
    }
    for (std::byte& b : little) {
      carry += std::to_integer<std::uint64_t>(b) * scale;
      b = static_cast<std::byte>(carry & 0xff);
      carry >>= 8;
    }
    for (; carry != 0; carry >>= 8) little.push_back(static_cast<std::byte>(carry & 0xff));
  }
  std::reverse(little.begin(), little.end());
  return integer_of_magnitude(negative, std::move(little));
}

Result<double> float_of_text(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || parsed.ptr != text.data() + text.size() ||
      parsed.ec == std::errc::invalid_argument) {
    return malformed("pickle float is no number; found \"" + std::string(text.substr(0, 40)) +
                     "\"");
  }
  return value;
}

Result<std::string> unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != text.back() ||
      (text.front() != '\'' && text.front() != '"')) {
    return malformed("pickle string has no quotes");
  }
  const std::string_view body = text.substr(1, text.size() - 2);
  std::string out;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    if (++i == body.size()) return malformed("pickle string ends in a backslash");
    constexpr std::string_view kFrom = "\\'\"abfnrtv";
    constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const auto known = kFrom.find(body[i]); known != std::string_view::npos) {
      out += kTo[known];
    } else if (body[i] == 'x') {
      unsigned value = 0;
      const char* begin = body.data() + i + 1;
      if (body.size() - i < 3 || std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) {
        return malformed("pickle string has a broken escape");
      }
      out += static_cast<char>(value);
      i += 2;
    } else if (body[i] >= '0' && body[i] <= '7') {
      unsigned value = 0;
      const char* begin = body.data() + i;
      const char* end = begin + std::min<std::size_t>(3, body.size() - i);
      const char* stop = std::from_chars(begin, end, value, 8).ptr;
      out += static_cast<char>(value & 0xffU);
      i += static_cast<std::size_t>(stop - begin) - 1;
    } else {
      out += '\\';
      out += body[i];
    }
  }
  return out;
}

Result<std::string> unescaped_unicode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'u' || text[i + 1] == 'U');
    if (!escape) {
      append_utf8(out, static_cast<std::uint8_t>(text[i++]));
      continue;
    }
    const std::size_t digits = text[i + 1] == 'u' ? 4 : 8;
    std::uint32_t point = 0;
    const char* begin = text.data() + i + 2;
    if (text.size() - i - 2 < digits ||
        std::from_chars(begin, begin + digits, point, 16).ptr != begin + digits ||
        point > 0x10ffff) {
      return malformed("pickle string has a broken escape");
    }
    append_utf8(out, point);
    i += 2 + digits;
  }
  return out;
}

}  // namespace ckptverify
