// What the files of a trainer tell from outside: whether a checkpoint still changes, and the last
// lines of a log.
#pragma once

#include <filesystem>
#include <string>

namespace ckptverify {

/// Names, sizes and times of everything at a path; empty while nothing is there.
std::string file_signature(const std::filesystem::path& path);

/// "a/step-5.pt, a/step-10.pt and 3 more" of a directory's files; "no file" where there is none.
std::string files_text(const std::filesystem::path& directory);

/// The last lines of a log, for evidence.
std::string last_lines(const std::filesystem::path& log);

}  // namespace ckptverify
