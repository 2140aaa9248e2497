// Opening files without being fooled by what they are, mapping them, and listing directories.
#include "ckptverify/source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/mapped_file.h"

namespace ckptverify {

namespace {

namespace fs = std::filesystem;

// Checkpoints of the known frameworks nest under five levels.
constexpr std::size_t kDepthMax = 32;
// A save of thousands of ranks with a file per tensor and rank stays below; a listing of a home
// directory by mistake should end early.
constexpr std::size_t kMemberCountMax = 1'000'000;

Error system_error(std::string_view action, int number) {
  return Error{.kind = ErrorKind::kUnreadable,
               .message = std::string(action) + ": " + std::strerror(number)};
}

Error kind_error(std::string_view found) {
  return Error{.kind = ErrorKind::kUnreadable,
               .message = "not a file that can hold a checkpoint; found " + std::string(found) +
                          ", expected a regular file or a directory"};
}

std::string_view kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISLNK(mode)) return "a symbolic link";
  return S_ISDIR(mode) ? "a directory" : "something else";
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

enum class Links { kFollow, kRefuse };

Result<MappedFile> map_file(const fs::path& path, Links links) {
  // Without O_NONBLOCK a FIFO that takes the file's place would block us.
  const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Descriptor file(::open(path.c_str(), links == Links::kFollow ? flags : flags | O_NOFOLLOW));
  if (file.number() < 0) return system_error("cannot be opened", errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return system_error("cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) return kind_error(kind_of(status.st_mode));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile();
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (start == MAP_FAILED) return system_error("cannot be mapped", errno);
  ::madvise(start, size, MADV_SEQUENTIAL);  // a hint; without it reading is merely slower
  return MappedFile(start, size, path.string());
}

bool is_inside(const fs::path& path, const fs::path& directory) {
  const auto [end, rest] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end() && rest != path.end();
}

/// Where a member really is, if that is a regular file inside of the directory.
std::optional<fs::path> resolved_inside(const fs::path& path, const fs::path& directory) {
  std::error_code failure;
  const fs::path real_directory = fs::canonical(directory, failure);
  if (failure) return std::nullopt;
  const fs::path real = fs::canonical(path, failure);
  if (failure || !is_inside(real, real_directory)) return std::nullopt;
  return fs::is_regular_file(real, failure) ? std::optional(real) : std::nullopt;
}

struct Listing {
  std::vector<std::string> members;
  std::vector<std::string> refused;
};

/// Files it, or gives the directory below that comes next.
void sort_in(const fs::directory_entry& entry, const fs::path& root, const std::string& name,
             std::vector<std::string>& directories, Listing& listing) {
  std::error_code failure;
  const fs::file_type type = entry.symlink_status(failure).type();
  if (type == fs::file_type::directory)
    directories.push_back(name);
  else if (type == fs::file_type::regular ||
           (type == fs::file_type::symlink && resolved_inside(entry.path(), root)))
    listing.members.push_back(name);
  else
    listing.refused.push_back(name);
}

Result<Listing> list_directory(const fs::path& root) {
  Listing listing;
  std::vector<std::string> level = {""};
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    if (depth > kDepthMax) {
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "directories nest too deeply; found " + level.front() +
                              ", expected at most " + std::to_string(kDepthMax) + " levels"};
    }
    std::vector<std::string> below;
    for (const std::string& directory : level) {
      std::error_code failure;
      fs::directory_iterator next(root / directory, failure);
      for (; !failure && next != fs::directory_iterator(); next.increment(failure)) {
        const std::string file = next->path().filename().string();
        sort_in(*next, root, directory.empty() ? file : directory + "/" + file, below, listing);
        if (listing.members.size() + listing.refused.size() + below.size() > kMemberCountMax) {
          return Error{.kind = ErrorKind::kUnsupported,
                       .message = "too many files in a directory; found more than " +
                                  std::to_string(kMemberCountMax) + ", expected at most that"};
        }
      }
      if (failure)
        return system_error("cannot list " + (root / directory).string(), failure.value());
    }
    level = std::move(below);
  }
  std::sort(listing.members.begin(), listing.members.end());
  std::sort(listing.refused.begin(), listing.refused.end());
  return listing;
}

/// A name from an untrusted file stays below the directory: no absolute path, no "..", no NUL.
Result<void> check_relative(std::string_view name) {
  const auto refuse = [name](std::string_view what) {
    return Error{.message = "a file's name " + std::string(what) + "; found \"" +
                            std::string(name) + "\", expected a path below the directory"};
  };
  if (name.empty()) return refuse("is empty");
  if (name.find('\0') != std::string_view::npos) return refuse("has a NUL byte");
  if (name.front() == '/') return refuse("is absolute");
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('/', start), name.size());
    if (name.substr(start, end - start) == "..") return refuse("leaves the directory");
    start = end + 1;
  }
  return {};
}

std::vector<std::string> below(const std::vector<std::string>& names, const std::string& prefix) {
  std::vector<std::string> found;
  for (auto name = std::lower_bound(names.begin(), names.end(), prefix);
       name != names.end() && name->compare(0, prefix.size(), prefix) == 0; ++name)
    found.push_back(name->substr(prefix.size()));
  return found;
}

}  // namespace

struct Source::Body {
  std::string name = {};
  fs::path path = {};
  bool directory = false;
  MappedFile mapping = {};
  std::shared_ptr<const std::vector<std::byte>> owned = {};  // a file in memory
  std::map<std::string, std::shared_ptr<const std::vector<std::byte>>> files = {};
  std::vector<std::string> members = {};
  std::vector<std::string> refused = {};
};

Result<Source> Source::open(const fs::path& path) {
  struct stat status {};
  // Before open(): opening a device can itself do something.
  if (::stat(path.c_str(), &status) != 0)
    return system_error("cannot be opened", errno).about(path.string());
  auto body = std::make_shared<Body>(Body{.name = path.string(), .path = path});
  if (S_ISDIR(status.st_mode)) {
    auto listing = list_directory(path);
    if (!listing) return std::move(listing).error().about(path.string());
    body->directory = true;
    body->members = std::move(listing->members);
    body->refused = std::move(listing->refused);
    return Source(std::move(body));
  }
  if (!S_ISREG(status.st_mode)) return kind_error(kind_of(status.st_mode)).about(path.string());
  auto mapping = map_file(path, Links::kFollow);
  if (!mapping) return std::move(mapping).error().about(path.string());
  return Source(std::make_shared<Body>(
      Body{.name = path.string(), .path = path, .mapping = *std::move(mapping)}));
}

Source Source::memory(std::string name, std::vector<std::byte> bytes) {
  return Source(std::make_shared<Body>(
      Body{.name = std::move(name),
           .owned = std::make_shared<const std::vector<std::byte>>(std::move(bytes))}));
}

Source Source::memory_directory(std::string name,
                                std::map<std::string, std::vector<std::byte>> files) {
  Body body{.name = std::move(name), .directory = true};
  for (auto& [relative, bytes] : files) {
    body.members.push_back(relative);
    body.files[relative] = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  }
  return Source(std::make_shared<Body>(std::move(body)));
}

const std::string& Source::name() const {
  return body_->name;
}
const fs::path& Source::path() const {
  return body_->path;
}
bool Source::is_directory() const {
  return body_->directory;
}
const std::vector<std::string>& Source::members() const {
  return body_->members;
}
const std::vector<std::string>& Source::refused() const {
  return body_->refused;
}

Bytes Source::bytes() const {
  return body_->owned != nullptr ? Bytes(*body_->owned) : body_->mapping.bytes();
}

bool Source::has_member(std::string_view relative) const {
  return std::binary_search(members().begin(), members().end(), relative);
}

Result<Source> Source::member(std::string_view relative) const {
  CKPTVERIFY_TRY_VOID(check_relative(relative));
  const std::string name(relative);
  if (std::binary_search(refused().begin(), refused().end(), name)) {
    return kind_error("a link that leaves the directory, or no regular file").about(name);
  }
  if (!has_member(name)) {
    return Error{.message = "no such file; found " + std::to_string(members().size()) +
                            " other files, expected this one",
                 .subject = name};
  }
  if (const auto file = body_->files.find(name); file != body_->files.end())
    return Source(std::make_shared<Body>(Body{.name = name, .owned = file->second}));
  const fs::path place = body_->path / name;
  // Once more: the directory may have changed since it was listed.
  const auto real = resolved_inside(place, body_->path);
  if (!real) return kind_error("something that is no longer a file in it").about(name);
  auto mapping = map_file(*real, Links::kRefuse);
  if (!mapping) return std::move(mapping).error().about(name);
  return Source(
      std::make_shared<Body>(Body{.name = name, .path = place, .mapping = *std::move(mapping)}));
}

Result<Source> Source::subdirectory(std::string_view relative) const {
  CKPTVERIFY_TRY_VOID(check_relative(relative));
  std::string name(relative);
  while (!name.empty() && name.back() == '/') name.pop_back();
  const std::string prefix = name + "/";
  Body body{.name = name, .directory = true};
  body.members = below(members(), prefix);
  body.refused = below(refused(), prefix);
  if (body.members.empty() && body.refused.empty()) {
    return Error{.message = "no such directory, or no file in it; found " +
                            std::to_string(members().size()) + " files elsewhere",
                 .subject = name};
  }
  if (!body_->path.empty()) body.path = body_->path / name;
  for (const std::string& member : body.members) {
    if (const auto file = body_->files.find(prefix + member); file != body_->files.end())
      body.files[member] = file->second;
  }
  return Source(std::make_shared<Body>(std::move(body)));
}

}  // namespace ckptverify
