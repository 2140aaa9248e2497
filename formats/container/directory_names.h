// What stands directly in a directory, and what the numbers in its names say. Layouts of several
// files are recognised by names alone; numbers are compared as numbers, never as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/source.h"

namespace ckptverify {

/// Files directly in the directory, in natural order.
std::vector<std::string> top_files(const Source& directory);
/// Names of the directories directly below it that hold any file, in natural order.
std::vector<std::string> top_directories(const Source& directory);

bool has_directory(const Source& directory, std::string_view name);

/// 7 for "rank_007.pt" between "rank_" and ".pt"; none where anything but digits stands between.
std::optional<std::uint64_t> number_between(std::string_view name, std::string_view prefix,
                                            std::string_view suffix);

/// "rank_07.pt" for "rank_03.pt", behind "rank_" and 7: what a missing sibling is called. As it is
/// where no number stands behind the word.
std::string with_number(std::string name, std::string_view word, std::uint64_t number);

/// "step-9" before "step-10": runs of digits compare as numbers of any length.
bool natural_less(std::string_view a, std::string_view b);

/// 3 and 5 for "model-00003-of-00005.safetensors" between "model-" and ".safetensors".
struct ShardNumber {
  std::uint64_t index = 0;
  std::uint64_t count = 0;
};
std::optional<ShardNumber> shard_number(std::string_view name, std::string_view prefix,
                                        std::string_view suffix);

/// The first number of [first, end) that is not among the sorted ones, and how many are not.
struct Holes {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
};
Holes holes_in(const std::vector<std::uint64_t>& sorted, std::uint64_t first, std::uint64_t end);

}  // namespace ckptverify
