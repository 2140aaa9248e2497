#include "src/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <system_error>
#include <utility>

namespace ckptverify::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Nothing is shown for what ends within the first of these.
constexpr std::chrono::milliseconds kFirst(500);
constexpr std::chrono::milliseconds kBetween(200);

constexpr const char* kWipe = "\r\x1b[K";

}  // namespace

std::string progress_text(std::uint64_t read, std::uint64_t total, double seconds) {
  read = std::min(read, total);
  std::string text = size_text(read) + " of " + size_text(total);
  const double speed = static_cast<double>(read) / std::max(seconds, 1e-3);
  if (speed < 1) return text;
  const double left = std::ceil(static_cast<double>(total - read) / speed);
  return text + ", " + size_text(static_cast<std::uint64_t>(speed)) + "/s, " +
         std::to_string(static_cast<std::uint64_t>(left)) + " s left";
}

std::uint64_t bytes_of_files(const Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (const Source& file : checkpoint.files) bytes += file.bytes().size();
  return bytes;
}

Progress::Progress(std::string action, std::uint64_t total)
    : action_(std::move(action)), total_(total) {
  if (::isatty(STDERR_FILENO) == 0) return;
  try {
    thread_ = std::thread([this] { show(); });
  } catch (const std::system_error&) {
    // Without a thread there is no line, and the work goes on.
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Progress::show() {
  const Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (auto wait = kFirst; !ended_.wait_for(lock, wait, [this] { return end_; }); wait = kBetween) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::cerr << kWipe << action_ << ' ' << progress_text(read_, total_, seconds) << std::flush;
    shown = true;
  }
  if (shown) std::cerr << kWipe << std::flush;
}

}  // namespace ckptverify::cli
