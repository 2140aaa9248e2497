// FICLONE first, then copy_file_range, then read and write, file by file: a directory may span file
// systems.

#include "harness/snapshot.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <vector>

#include "harness/descriptor.h"

namespace ckptverify {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1024 * 1024;
constexpr std::size_t kRangeBytes = 16 * 1024 * 1024;  // a call; signals are heard between two

Error file_error(const char* what, const fs::path& file, int error) {
  return Error{ErrorKind::kUnreadable,
               std::string(what) + ": " + std::generic_category().message(error), file.string()};
}

/// An error once the user wants to stop.
Result<void> heard(int interrupt, const fs::path& to) {
  pollfd ready = {interrupt, POLLIN, 0};
  if (interrupt < 0 || ::poll(&ready, 1, 0) != 1) return {};
  return Error{ErrorKind::kUnreadable, "the copy was broken off by a signal", to.string()};
}

Result<void> write_all(int output, const std::byte* data, std::size_t size, const fs::path& to) {
  while (size > 0) {
    const ssize_t written = ::write(output, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("cannot be written", to, errno);
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

Result<void> copy_by_buffer(int input, int output, const fs::path& from, const fs::path& to,
                            int interrupt) {
  std::vector<std::byte> buffer(kBufferBytes);
  while (true) {
    CKPTVERIFY_TRY_VOID(heard(interrupt, to));
    const ssize_t count = ::read(input, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("cannot be read", from, errno);
    if (count == 0) return {};
    CKPTVERIFY_TRY_VOID(write_all(output, buffer.data(), static_cast<std::size_t>(count), to));
  }
}

/// Both calls move the files' positions, so one may go on where the other gave up.
Result<void> copy_bytes(int input, int output, const fs::path& from, const fs::path& to,
                        int interrupt) {
  while (true) {
    CKPTVERIFY_TRY_VOID(heard(interrupt, to));
    const ssize_t count = ::copy_file_range(input, nullptr, output, nullptr, kRangeBytes, 0);
    if (count > 0) continue;
    if (count == 0) break;
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
      return file_error("cannot be written", to, errno);
    }
    break;  // not between these file systems
  }
  return copy_by_buffer(input, output, from, to,
                        interrupt);  // at the end already where all was copied
}

Result<void> copy_file(const fs::path& from, const fs::path& to, int interrupt,
                       Snapshot& snapshot) {
  CKPTVERIFY_TRY_VOID(heard(interrupt, to));
  const Descriptor input(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!input.is_open()) return file_error("cannot be opened", from, errno);
  struct stat status = {};
  if (::fstat(input.number(), &status) != 0) {
    return file_error("cannot be inspected", from, errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorKind::kUnreadable, "is neither a regular file nor a directory",
                 from.string()};
  }
  const Descriptor output(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                 (status.st_mode & 0777U) | 0600U));
  if (!output.is_open()) return file_error("cannot be made", to, errno);
  ++snapshot.file_count;
  snapshot.bytes += static_cast<std::uint64_t>(status.st_size);
  if (::ioctl(output.number(), FICLONE, input.number()) == 0) return {};
  if (status.st_size > 0) snapshot.method = CopyMethod::kCopy;
  return copy_bytes(input.number(), output.number(), from, to, interrupt);
}

/// Inside the checkpoint a link may point to another of its files; it is kept as the link it is.
Result<void> copy_link(const fs::path& link, const fs::path& to, const fs::path& root) {
  std::error_code error;
  const fs::path points_to = fs::read_symlink(link, error);
  if (error) return file_error("cannot be read", link, error.value());
  const fs::path end = (link.parent_path() / points_to).lexically_normal();
  const fs::path inside = end.lexically_relative(root.lexically_normal());
  if (points_to.is_absolute() || inside.empty() || *inside.begin() == "..") {
    return Error{ErrorKind::kUnreadable,
                 "is a link out of the checkpoint; found " + points_to.string() +
                     ", expected a target inside",
                 link.string()};
  }
  fs::create_symlink(points_to, to, error);
  if (error) return file_error("cannot be made", to, error.value());
  return {};
}

Result<void> copy_tree(const fs::path& from, const fs::path& to, const fs::path& root,
                       int interrupt, Snapshot& snapshot) {
  std::error_code error;
  fs::create_directory(to, error);
  if (error) return file_error("cannot be made", to, error.value());
  fs::directory_iterator entry(from, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const fs::path target = to / entry->path().filename();
    const fs::file_status status = entry->symlink_status(error);
    if (error) return file_error("cannot be inspected", entry->path(), error.value());
    if (fs::is_symlink(status)) {
      CKPTVERIFY_TRY_VOID(copy_link(entry->path(), target, root));
    } else if (fs::is_directory(status)) {
      CKPTVERIFY_TRY_VOID(copy_tree(entry->path(), target, root, interrupt, snapshot));
    } else {
      CKPTVERIFY_TRY_VOID(copy_file(entry->path(), target, interrupt, snapshot));
    }
  }
  if (error) return file_error("cannot be listed", from, error.value());
  return {};
}

Result<void> make_parent(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return file_error("cannot be made", path.parent_path(), error.value());
  return {};
}

}  // namespace

std::string_view copy_method_name(CopyMethod method) {
  return method == CopyMethod::kReflink ? "reflink" : "copy";
}

Result<Snapshot> take_snapshot(const fs::path& checkpoint, const fs::path& target, int interrupt) {
  const auto begin = std::chrono::steady_clock::now();
  Snapshot snapshot;
  snapshot.path = target;
  CKPTVERIFY_TRY_VOID(make_parent(target));
  std::error_code error;
  // The path as given may itself be a link ("latest"): its target is the checkpoint.
  const fs::path root = fs::canonical(checkpoint, error);
  if (error) return file_error("cannot be opened", checkpoint, error.value());
  if (fs::is_directory(root, error)) {
    CKPTVERIFY_TRY_VOID(copy_tree(root, target, root, interrupt, snapshot));
  } else {
    CKPTVERIFY_TRY_VOID(copy_file(root, target, interrupt, snapshot));
  }
  snapshot.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return snapshot;
}

Result<void> move_away(const fs::path& path, const fs::path& target) {
  CKPTVERIFY_TRY_VOID(make_parent(target));
  std::error_code error;
  fs::rename(path, target, error);
  if (error) return file_error("cannot be moved away", path, error.value());
  return {};
}

}  // namespace ckptverify
