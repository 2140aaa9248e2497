// Both look at metadata and at the end of a file alone: they are asked many times a second.

#include "harness/file_signs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <vector>

namespace ckptverify {
namespace {

constexpr std::uint64_t kLogTailBytes = 4096;
constexpr std::size_t kLogTailLines = 20;
/// A few names show what was meant; whoever wrote thousands of files is not listed to the end.
constexpr std::size_t kFilesShown = 6;
constexpr std::size_t kFilesLookedAt = 10'000;

}  // namespace

std::string file_signature(const std::filesystem::path& path) {
  std::string text;
  const auto add = [&text](const std::filesystem::path& file) {
    struct stat status = {};
    if (::lstat(file.c_str(), &status) != 0) return;
    text += file.string() + ' ' + std::to_string(status.st_size) + ' ' +
            std::to_string(status.st_mtim.tv_sec) + '.' + std::to_string(status.st_mtim.tv_nsec) +
            '\n';
  };
  add(path);
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::recursive_directory_iterator entry(path, error), end;
       !error && entry != end; entry.increment(error)) {
    files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) add(file);
  return text;
}

std::string files_text(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::recursive_directory_iterator entry(directory, error), end;
       !error && entry != end && names.size() < kFilesLookedAt; entry.increment(error)) {
    std::error_code unknown;
    if (std::filesystem::is_directory(entry->symlink_status(unknown))) continue;
    names.push_back(entry->path().lexically_relative(directory).string());
  }
  if (names.empty()) return "no file";
  std::sort(names.begin(), names.end());
  std::string text;
  for (std::size_t index = 0; index < std::min(kFilesShown, names.size()); ++index) {
    text += (index == 0 ? "" : ", ") + names[index];
  }
  if (names.size() > kFilesShown) {
    text += " and " + std::to_string(names.size() - kFilesShown) + " more";
  }
  return text;
}

std::string last_lines(const std::filesystem::path& log) {
  std::ifstream stream(log, std::ios::binary | std::ios::ate);
  if (!stream) return {};
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(stream.tellg(), 0));
  const std::uint64_t begin = size > kLogTailBytes ? size - kLogTailBytes : 0;
  stream.seekg(static_cast<std::streamoff>(begin));
  std::string text(size - begin, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  std::size_t lines = 0;
  for (std::size_t at = text.size(); at > 0; --at) {
    if (text[at - 1] == '\n' && at != text.size() && ++lines == kLogTailLines) {
      return text.substr(at);
    }
  }
  return text;
}

}  // namespace ckptverify
