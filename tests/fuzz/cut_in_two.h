// One input as the contents of two files, cut where its first two bytes say.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace ckptverify {

/// Two empty files where the input is shorter than those bytes.
inline std::pair<std::vector<std::byte>, std::vector<std::byte>> cut_in_two(
    const unsigned char* data, std::size_t size) {
  constexpr std::size_t kPrefix = 2;
  if (size < kPrefix) return {};
  const auto* begin = reinterpret_cast<const std::byte*>(data) + kPrefix;
  const auto* end = begin + (size - kPrefix);
  const std::size_t wanted = std::size_t{data[0]} * 256 + data[1];
  const auto* middle = begin + std::min(wanted, size - kPrefix);
  return {{begin, middle}, {middle, end}};
}

}  // namespace ckptverify
