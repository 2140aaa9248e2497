// One watch a directory, or one of the file itself: an event of a directory names the entry that
// was opened, and tells whether that is a directory.

#include "harness/open_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

namespace ckptverify {
namespace {

/// Far below the kernel's usual limit, which all programs of a user share.
constexpr std::size_t kDirectoriesMax = 1000;

bool add(int descriptor, const std::filesystem::path& path) {
  return ::inotify_add_watch(descriptor, path.c_str(), IN_OPEN) >= 0;
}

}  // namespace

OpenWatch::OpenWatch(const std::filesystem::path& path)
    : descriptor_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!descriptor_.is_open()) return;
  complete_ = add(descriptor_.number(), path);
  std::error_code error;
  std::size_t directories = 0;
  for (std::filesystem::recursive_directory_iterator entry(path, error), end;
       complete_ && !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(entry->symlink_status(unknown))) continue;
    complete_ = ++directories <= kDirectoriesMax && add(descriptor_.number(), entry->path());
  }
  // Looking for directories opened them.
  char buffer[4096];
  while (descriptor_.is_open() && ::read(descriptor_.number(), buffer, sizeof buffer) > 0) {
  }
}

std::optional<bool> OpenWatch::opened() const {
  if (!descriptor_.is_open()) return std::nullopt;
  alignas(inotify_event) char buffer[4096];
  bool any = false;
  for (ssize_t size; (size = ::read(descriptor_.number(), buffer, sizeof buffer)) > 0;) {
    for (ssize_t at = 0; at < size;) {
      inotify_event event = {};
      std::memcpy(&event, buffer + at, sizeof event);
      if ((event.mask & IN_Q_OVERFLOW) != 0) return std::nullopt;
      any = any || (event.mask & IN_ISDIR) == 0;
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  if (any) return true;
  return complete_ ? std::optional(false) : std::nullopt;
}

}  // namespace ckptverify
