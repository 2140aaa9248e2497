// Starts the child, reads its lines until it ends or its time is up, kills and reaps it.
#include "formats/container/hdf5_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "ckptverify/exit.h"

namespace ckptverify {
namespace {

constexpr std::size_t kOutputMax = std::size_t{512} << 20;  // 4 million chunks, 100 bytes each
constexpr int kFileDescriptor = 3;                          // in the child

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

Error unreadable(const std::string& what) {
  return Error{.kind = ErrorKind::kUnreadable, .message = what + ": " + std::strerror(errno)};
}

/// Memory as a file: tests and fuzzers have no other.
Result<Descriptor> file_of_memory(Bytes bytes) {
  Descriptor file(memfd_create("ckptverify", MFD_CLOEXEC));
  if (file.get() < 0) return unreadable("no memory file for the HDF5 child");
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return unreadable("memory file for the HDF5 child is not writable");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return file;
}

Result<Descriptor> open_source(const Source& source) {
  if (source.path().empty()) return file_of_memory(source.bytes());
  Descriptor file(open(source.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return unreadable("file does not open for the HDF5 child");
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) return unreadable("file has no status");
  if (!S_ISREG(status.st_mode) || std::cmp_not_equal(status.st_size, source.bytes().size()))
    return Error{.kind = ErrorKind::kUnreadable,
                 .message = "file changed while it was read; found " +
                            std::to_string(status.st_size) + " bytes, expected " +
                            std::to_string(source.bytes().size())};
  return file;
}

Result<std::filesystem::path> child_executable(const Hdf5ProbeOptions& options) {
  if (!options.executable.empty()) return options.executable;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto child = self.parent_path() / "ckptverify-hdf5";
  if (error || access(child.c_str(), X_OK) != 0)
    return Error{.kind = ErrorKind::kUnreadable,
                 .message = "the HDF5 child is not beside the tool; expected " + child.string()};
  return child;
}

/// A running child and the pipe that it writes to.
struct Child {
  pid_t pid = -1;
  Descriptor output;
};

/// The environment that the library may see: nothing that loads plugins or picks drivers.
std::vector<std::string> child_environment() {
  std::vector<std::string> environment = {"HDF5_USE_FILE_LOCKING=FALSE", "LC_ALL=C"};
  if (const char* libraries = std::getenv("LD_LIBRARY_PATH"))
    environment.push_back(std::string("LD_LIBRARY_PATH=") + libraries);
  return environment;
}

Result<Child> start(const std::filesystem::path& executable, const Descriptor& file) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return unreadable("no pipe for the HDF5 child");
  Child child{.output = Descriptor(ends[0])};
  const Descriptor write_end(ends[1]);
  // Out of the way of descriptors 0 to 3, which the actions below assign.
  const Descriptor high_file(fcntl(file.get(), F_DUPFD_CLOEXEC, 10));
  const Descriptor high_end(fcntl(write_end.get(), F_DUPFD_CLOEXEC, 10));
  if (high_file.get() < 0 || high_end.get() < 0) return unreadable("no descriptor for the child");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, high_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, high_file.get(), kFileDescriptor);
  posix_spawn_file_actions_addclosefrom_np(&actions, kFileDescriptor + 1);
  std::string name = executable.filename();
  std::string parent = std::to_string(getpid());
  std::array<char*, 3> arguments = {name.data(), parent.data(), nullptr};
  std::vector<std::string> environment = child_environment();
  std::vector<char*> environment_pointers;
  for (std::string& variable : environment) environment_pointers.push_back(variable.data());
  environment_pointers.push_back(nullptr);
  const int error = posix_spawn(&child.pid, executable.c_str(), &actions, nullptr, arguments.data(),
                                environment_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    errno = error;
    return unreadable("the HDF5 child " + executable.string() + " does not start");
  }
  return child;
}

enum class Ending { kEndOfFile, kDeadline, kTooMuch, kReadError };

Ending read_output(int fd, std::chrono::steady_clock::time_point deadline, std::string& output) {
  std::array<char, 65536> buffer;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Ending::kDeadline;
    pollfd ready = {.fd = fd, .events = POLLIN, .revents = 0};
    const int count =
        poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60000)));
    if (count == 0 || (count < 0 && errno == EINTR)) continue;
    if (count < 0) return Ending::kReadError;
    const ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Ending::kReadError;
    if (size == 0) return Ending::kEndOfFile;
    output.append(buffer.data(), static_cast<std::size_t>(size));
    if (output.size() > kOutputMax) return Ending::kTooMuch;
  }
}

/// Whatever the child is doing. One that is already on its way out keeps its own status.
Exit end(pid_t pid) {
  kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Exit{.reason = "the child was reaped by somebody else"};
  return exit_from_wait_status(status, ExitAuthor::kItself);
}

/// The child could not run at all (exit 2: no limits; 127: a library is missing), or somebody else
/// killed it: nothing is known about the file.
bool says_nothing(const Exit& exit, const std::string& output) {
  if (exit.kind == ExitKind::kSignalled) return exit.signal == SIGKILL;
  return exit.kind != ExitKind::kExited || (exit.code != 0 && output.empty());
}

/// A damaged file may send the library in circles, a file of very many chunks takes it long: which
/// of the two cannot be told.
Error out_of_time(const std::string& waited) {
  return Error{
      .kind = ErrorKind::kUnreadable,
      .message = "the HDF5 library does not come to an end with this file; waited " + waited};
}

Error death(const Exit& exit) {
  return Error{.message = "the HDF5 library died of this file: " + exit.text(),
               .cause = Cause{CauseKind::kBitrot, {}}};
}

}  // namespace

Result<Hdf5Listing> probe_hdf5(const Source& source, const Hdf5ProbeOptions& options) {
  CKPTVERIFY_TRY(const std::filesystem::path executable, child_executable(options));
  CKPTVERIFY_TRY(const Descriptor file, open_source(source));
  CKPTVERIFY_TRY(Child child, start(executable, file));
  std::string output;
  const auto deadline = std::chrono::steady_clock::now() + options.deadline;
  const Ending ending = read_output(child.output.get(), deadline, output);
  const Exit exit = end(child.pid);
  switch (ending) {
    case Ending::kReadError:
      return unreadable("the HDF5 child's output is not readable");
    case Ending::kDeadline:
      return out_of_time(std::to_string(options.deadline.count()) + " ms");
    case Ending::kTooMuch:
      return Error{.message = "the HDF5 library lists more than a checkpoint holds; found over " +
                              std::to_string(kOutputMax) + " bytes of listing",
                   .cause = Cause{CauseKind::kBitrot, {}}};
    case Ending::kEndOfFile:
      break;
  }
  if (says_nothing(exit, output))
    return Error{.kind = ErrorKind::kUnreadable,
                 .message = "the HDF5 child did not do its work: " + exit.text()};
  if (exit.kind == ExitKind::kSignalled && exit.signal == SIGXCPU)
    return out_of_time("its CPU time");
  if (exit.kind == ExitKind::kSignalled) return death(exit);
  return parse_hdf5_listing(output, source.bytes().size());
}

}  // namespace ckptverify
