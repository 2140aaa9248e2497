// Inotify only wakes us up; what is read is decided by how far each file was read before, so that a
// lost or merged notification loses nothing.

#include "harness/trace_reader.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace ckptverify {
namespace {

/// The contract ends a line at 64 KiB; a foreign emitter gets some grace before it is not read.
constexpr std::size_t kLineBytesMax = 1024 * 1024;
/// Noted one by one; a flood of garbage is noted once more and then only passed over.
constexpr std::size_t kGarbledMax = 1000;
/// Beyond this steps and memory figures are no longer kept: no experiment needs as many.
constexpr std::size_t kEventsMax = 500'000;
/// Side files and directories aside, a tree has a file a process.
constexpr std::size_t kFilesMax = 4096;

bool is_repetitive(const Event& event) {
  return std::holds_alternative<StepEvent>(event.what) ||
         std::holds_alternative<MemoryEvent>(event.what);
}

}  // namespace

Result<TraceReader> TraceReader::follow(const std::filesystem::path& directory) {
  TraceReader reader(directory);
  reader.changes_ = Descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!reader.changes_.is_open() || ::inotify_add_watch(reader.changes_.number(), directory.c_str(),
                                                        IN_CREATE | IN_MODIFY | IN_MOVED_TO) < 0) {
    return Error{ErrorKind::kUnreadable,
                 "cannot be watched: " + std::generic_category().message(errno),
                 directory.string()};
  }
  return reader;
}

std::size_t TraceReader::collect() {
  std::array<char, 4096> notifications;
  while (::read(changes_.number(), notifications.data(), notifications.size()) > 0) {
  }
  const std::size_t before = trace_.events.size();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(".jsonl")) continue;
    if (files_.size() >= kFilesMax && !files_.contains(name)) continue;
    read_file(entry->path(), files_[name]);
  }
  return trace_.events.size() - before;
}

void TraceReader::read_file(const std::filesystem::path& path, File& file) {
  // Not through a FIFO or a device that a trainer may have put there.
  const Descriptor input(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  std::error_code error;
  if (!input.is_open() || !std::filesystem::is_regular_file(path, error)) return;
  struct stat status = {};
  if (::fstat(input.number(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) < file.offset && !file.cut) {
    file.cut = true;  // said once; what is written behind the cut is read where it is new
    garble(path.filename().string(), file.line + 1,
           "the file was cut short; found " + std::to_string(status.st_size) +
               " bytes, expected at least " + std::to_string(file.offset));
  }
  std::array<char, 65536> buffer;
  while (true) {
    const ssize_t count =
        ::pread(input.number(), buffer.data(), buffer.size(), static_cast<off_t>(file.offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    file.offset += static_cast<std::uint64_t>(count);
    take_text(path.filename().string(), file,
              std::string_view(buffer.data(), static_cast<std::size_t>(count)));
  }
}

void TraceReader::take_text(const std::string& name, File& file, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view part = text.substr(0, end);
    if (!file.oversized) file.unfinished.append(part);
    if (file.unfinished.size() > kLineBytesMax) {
      garble(name, file.line + 1,
             "longer than any event; found more than " + std::to_string(kLineBytesMax) +
                 " bytes without an end of line");
      file.unfinished.clear();
      file.oversized = true;
    }
    if (end == std::string_view::npos) return;
    ++file.line;
    if (!std::exchange(file.oversized, false)) take_line(name, file.line, file.unfinished);
    file.unfinished.clear();
    text.remove_prefix(end + 1);
  }
}

void TraceReader::take_line(const std::string& name, std::uint64_t line, std::string_view text) {
  Result<Event> event = parse_event(text, directory_.string());
  if (!event) {
    garble(name, line, event.error().text());
  } else {
    keep(*std::move(event));
  }
}

void TraceReader::keep(Event event) {
  if (trace_.events.size() >= kEventsMax && is_repetitive(event)) {
    if (!std::exchange(full_, true)) {
      garble("", 0, "more than " + std::to_string(kEventsMax) + " events; steps are kept no more");
    }
    return;
  }
  trace_.events.push_back(std::move(event));
}

void TraceReader::garble(const std::string& name, std::uint64_t line, std::string reason) {
  if (trace_.garbled.size() < kGarbledMax) {
    trace_.garbled.push_back({name, line, std::move(reason)});
  } else if (trace_.garbled.size() == kGarbledMax) {
    trace_.garbled.push_back({name, line, "and more lines that are no events"});
  }
}

Trace TraceReader::finish() {
  collect();
  for (auto& [name, file] : files_) {
    std::error_code error;
    if (file.offset > 0 && !std::filesystem::is_regular_file(directory_ / name, error)) {
      garble(name, file.line + 1, "the file was removed or replaced while its writer ran");
    }
    if (file.unfinished.empty()) continue;
    garble(name, file.line + 1, "the line has no end: its writer was cut off in it");
    file.unfinished.clear();
  }
  return std::exchange(trace_, {});
}

}  // namespace ckptverify
