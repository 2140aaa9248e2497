// Follows the event files of one process tree while they grow. A line that is not finished waits; a
// line that is no event is noted and passed over; what is kept is bounded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "ckptverify/event.h"
#include "harness/descriptor.h"

namespace ckptverify {

class TraceReader {
 public:
  /// `directory` must exist; its *.jsonl files are event files, everything else is left alone.
  static Result<TraceReader> follow(const std::filesystem::path& directory);

  /// Becomes readable when something in the directory may have changed.
  int descriptor() const { return changes_.number(); }

  /// Reads what is new; the number of new events.
  std::size_t collect();

  const Trace& trace() const { return trace_; }

  /// The last of it: a line without an end is now garbled, not unfinished.
  Trace finish();

 private:
  struct File {
    std::uint64_t offset = 0;  // of the first byte that was not read yet
    std::uint64_t line = 0;    // finished lines so far
    std::string unfinished;    // what was read of the line after them
    bool oversized = false;    // the line is longer than any event: skipped to its end
    bool cut = false;          // it was shorter once than what had been read of it
  };

  explicit TraceReader(std::filesystem::path directory) : directory_(std::move(directory)) {}
  void read_file(const std::filesystem::path& path, File& file);
  void take_text(const std::string& name, File& file, std::string_view text);
  void take_line(const std::string& name, std::uint64_t line, std::string_view text);
  void garble(const std::string& name, std::uint64_t line, std::string reason);
  void keep(Event event);

  std::filesystem::path directory_;
  Descriptor changes_;
  std::map<std::string, File> files_;
  Trace trace_;
  bool full_ = false;
};

}  // namespace ckptverify
