// How far a long read has come, on a terminal alone: one line on standard error that is rewritten
// in place and wiped at the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "src/cli/command.h"

namespace ckptverify::cli {

class Progress {
 public:
  /// `total` bytes are about to be read. Shows nothing where standard error is no terminal.
  Progress(std::string action, std::uint64_t total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Stops and wipes the line.
  ~Progress();

  /// Where readers count.
  std::atomic<std::uint64_t>* bytes_read() { return &read_; }

 private:
  void show();

  std::string action_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> read_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

/// Bytes of all files of a checkpoint.
std::uint64_t bytes_of_files(const Checkpoint& checkpoint);

/// "1.2 of 8.0 GiB, 3.1 GiB/s, 2 s left".
std::string progress_text(std::uint64_t read, std::uint64_t total, double seconds);

}  // namespace ckptverify::cli
