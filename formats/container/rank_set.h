// Files of which each rank writes its own: which ranks are there, and which are not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/container/assembly.h"

namespace ckptverify {

struct RankFile {
  std::uint32_t rank = 0;
  std::string name;
};

/// The files <prefix><rank><suffix> directly in the directory, by rank. Two spellings of one rank
/// ("rank_0", "rank_00") are both listed.
std::vector<RankFile> rank_files_in(const Source& directory, std::string_view prefix,
                                    std::string_view suffix);

/// How many ranks the files themselves speak of: one more than the highest.
std::uint64_t rank_count(const std::vector<RankFile>& files);

/// Notes the ranks of [first, expected) without a file as missing shards. `subject` names the set.
void check_ranks(Assembly& assembly, const std::vector<RankFile>& files, std::uint64_t expected,
                 const std::string& subject, std::uint64_t first = 0);

}  // namespace ckptverify
