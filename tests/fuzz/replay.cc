// Every fuzz target over files, without libFuzzer: fuzz_replay TARGET PATH... runs one target on
// each file, and on each file below a folder. What was kept of a fuzzing run, and the fixtures, go
// through the same functions in every build. A crash ends it; so does an input that takes too long
// or too much memory, as it would end libFuzzer.
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

// FUZZ_TARGETS is X(gguf_fuzz) X(npy_fuzz) ...: the functions of the other files of this folder.
#define X(target) extern "C" int target(const unsigned char* data, std::size_t size);
FUZZ_TARGETS
#undef X

namespace {

namespace fs = std::filesystem;

struct Target {
  std::string_view name;
  int (*run)(const unsigned char* data, std::size_t size);
};

constexpr Target kTargets[] = {
#define X(target) {#target, target},
    FUZZ_TARGETS
#undef X
};

// What the limits are stated for; a larger file says nothing about them.
constexpr std::size_t kInputBytesMax = 1 << 20;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Shadow memory and a slowdown of the sanitizer's own.
constexpr double kSecondsMax = 20;
constexpr long kPeakKibMax = 2L << 20;
#else
// One second is promised of a release build; a debug build is some times slower.
constexpr double kSecondsMax = 5;
constexpr long kPeakKibMax = 512L << 10;
#endif

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

std::vector<fs::path> files_below(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// True where the input stayed within the limits.
bool replay(const Target& target, const fs::path& path, double& slowest) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::printf("%s: cannot be opened\n", path.c_str());
    return false;
  }
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  if (bytes.size() > kInputBytesMax) return true;
  const double begin = processor_seconds();
  // Named first: a crash leaves the name as the last line.
  std::fprintf(stderr, "%s\n", path.c_str());
  target.run(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  const double taken = processor_seconds() - begin;
  slowest = std::max(slowest, taken);
  if (taken > kSecondsMax)
    std::printf("%s: took %.1f s of processor time, at most %.0f are allowed\n", path.c_str(),
                taken, kSecondsMax);
  if (peak_kib() > kPeakKibMax)
    std::printf("%s: memory rose to %ld KiB, at most %ld are allowed\n", path.c_str(), peak_kib(),
                kPeakKibMax);
  return taken <= kSecondsMax && peak_kib() <= kPeakKibMax;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto* target = arguments.empty()
                           ? std::end(kTargets)
                           : std::find_if(std::begin(kTargets), std::end(kTargets),
                                          [&](const Target& t) { return t.name == arguments[0]; });
  if (target == std::end(kTargets) || arguments.size() < 2) {
    std::printf("usage: fuzz_replay TARGET PATH...; the targets are\n");
    for (const Target& known : kTargets) std::printf("  %s\n", known.name.data());
    return 64;
  }
  std::size_t count = 0;
  bool all_well = true;
  double slowest = 0;
  for (auto argument = arguments.begin() + 1; argument != arguments.end(); ++argument) {
    const auto files = files_below(*argument);
    if (files.empty()) {
      std::printf("%s: no files\n", argument->c_str());
      all_well = false;
    }
    for (const fs::path& file : files) {
      all_well = replay(*target, file, slowest) && all_well;
      ++count;
    }
  }
  std::printf("%s: %zu inputs, slowest %.3f s, peak %ld KiB\n", target->name.data(), count, slowest,
              peak_kib());
  return all_well ? 0 : 1;
}
