// A hole below the highest rank is certain; ranks above it that never wrote leave no trace here.
#include "formats/container/rank_set.h"

#include <algorithm>
#include <limits>

#include "formats/container/directory_names.h"

namespace ckptverify {

std::vector<RankFile> rank_files_in(const Source& directory, std::string_view prefix,
                                    std::string_view suffix) {
  std::vector<RankFile> found;
  for (const std::string& name : top_files(directory)) {
    const auto rank = number_between(name, prefix, suffix);
    if (rank && *rank < std::numeric_limits<std::uint32_t>::max())
      found.push_back({.rank = static_cast<std::uint32_t>(*rank), .name = name});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const RankFile& a, const RankFile& b) { return a.rank < b.rank; });
  return found;
}

std::uint64_t rank_count(const std::vector<RankFile>& files) {
  return files.empty() ? 0 : std::uint64_t{files.back().rank} + 1;
}

void check_ranks(Assembly& assembly, const std::vector<RankFile>& files, std::uint64_t expected,
                 const std::string& subject, std::uint64_t first) {
  std::vector<std::uint64_t> ranks;
  for (const RankFile& file : files) ranks.push_back(file.rank);
  const Holes holes = holes_in(ranks, first, expected);
  if (holes.count == 0) return;
  std::string message = "files of ranks are missing; found " +
                        std::to_string(expected - first - holes.count) + ", expected " +
                        std::to_string(expected - first);
  // Of a set of names, "rank*.pt", the siblings tell what a rank's file is called.
  const std::string_view before = std::string_view(subject).substr(0, subject.find('*'));
  if (!files.empty() && before.size() < subject.size())
    message += "; the first missing is " + with_number(files.front().name, before, holes.first);
  assembly.fail(CauseKind::kShardMissing, subject, message,
                {{"first missing rank", std::to_string(holes.first)}});
}

}  // namespace ckptverify
