// ckptverify-hdf5: the child process in which the HDF5 library opens a file that may be damaged.
// Descriptor 3 is the file, opened for reading by the parent; standard output gets lines of JSON.
// Its last line says that it is the last, so that a death before it is seen for what it is.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "formats/container/hdf5_child/library.h"
#include "formats/container/hdf5_child/walk.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CKPTVERIFY_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CKPTVERIFY_SANITIZED 1
#endif
#endif

#ifdef CKPTVERIFY_SANITIZED
// A size that a damaged file claims must fail as an allocation does, as it does without sanitizers;
// what they find must look like the crash that it would be.
static constexpr const char* kSanitizerOptions = "allocator_may_return_null=1:abort_on_error=1";
extern "C" const char* __asan_default_options();   // NOLINT: the sanitizer's own name
extern "C" const char* __asan_default_options() {  // NOLINT
  return kSanitizerOptions;
}
extern "C" const char* __tsan_default_options();   // NOLINT
extern "C" const char* __tsan_default_options() {  // NOLINT
  return kSanitizerOptions;
}
#endif

namespace {

using namespace ckptverify;
using namespace ckptverify::hdf5_child;

constexpr const char* kFile = "/proc/self/fd/3";
constexpr int kFileDescriptor = 3;
constexpr const char* kImageName = "/proc/self/fd/image";  // must not exist
constexpr std::size_t kImageIncrement = 65536;
constexpr rlim_t kCpuSeconds = 300;  // listing 100,000 chunks of one dataset
constexpr rlim_t kAddressSpace = rlim_t{4} << 30;
constexpr rlim_t kDescriptors = 32;

void limit(decltype(RLIMIT_CPU) what, rlim_t value) {
  const rlimit both = {value, value};
  if (setrlimit(what, &both) != 0) std::_Exit(2);
}

/// Dies with the parent; may neither write a file nor take the machine.
void confine(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(2);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, kCpuSeconds);
  limit(RLIMIT_NOFILE, kDescriptors);
#ifndef CKPTVERIFY_SANITIZED  // sanitizers reserve terabytes of address space
  limit(RLIMIT_AS, kAddressSpace);
#endif
}

/// Only reads, by plain system calls; a file without a path (memory, or deleted meanwhile) the
/// library would refuse, so it gets a copy of the bytes.
Identifier open_file(const Identifier& access) {
  H5Pset_fapl_sec2(access.get());
  char* path = realpath(kFile, nullptr);
  std::free(path);
  struct stat status = {};
  if (path != nullptr || fstat(kFileDescriptor, &status) != 0 || status.st_size <= 0)
    return {H5Fopen(kFile, H5F_ACC_RDONLY, access.get()), H5Fclose};
  const auto size = static_cast<std::size_t>(status.st_size);
  void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, kFileDescriptor, 0);
  if (bytes != MAP_FAILED) {
    H5Pset_fapl_core(access.get(), kImageIncrement, 0);
    H5Pset_file_image(access.get(), bytes, size);
  }
  return {H5Fopen(kImageName, H5F_ACC_RDONLY, access.get()), H5Fclose};
}

bool write_line(const char* kind, const char* key, Json value) {
  Json line = Json(Json::Object{});
  line.set("kind", kind);
  line.set(key, std::move(value));
  const std::string text = line.text() + "\n";
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("ckptverify-hdf5 is run by ckptverify, with its process id\n", stderr);
    return 64;
  }
  confine(static_cast<pid_t>(std::strtol(argv[1], nullptr, 10)));
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);  // a file must not make the library load code
  const Identifier access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  const Identifier file = open_file(access);
  if (!file) {
    write_line("error", "what", "the HDF5 library does not open the file: " + library_error());
    return 1;
  }
  Walk walk(file.get());
  if (!walk.run()) return 1;
  return write_line("end", "lines", walk.line_count()) && std::fflush(stdout) == 0 ? 0 : 1;
}
