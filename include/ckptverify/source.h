// A name and read-only bytes: a file (mapped), a directory of files, or memory (tests and fuzzers).
// Copies share the mapping. Nothing but regular files and directories is ever opened: a FIFO, a
// device and a link that leaves the directory are errors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"

namespace ckptverify {

class Source {
 public:
  static Result<Source> open(const std::filesystem::path& path);
  static Source memory(std::string name, std::vector<std::byte> bytes);
  static Source memory_directory(std::string name,
                                 std::map<std::string, std::vector<std::byte>> files);

  /// The path as given to open(); for a member, its path inside the directory.
  const std::string& name() const;
  /// Where the file or directory is on disk; empty for memory.
  const std::filesystem::path& path() const;
  bool is_directory() const;

  /// The whole file; empty for a directory.
  Bytes bytes() const;

  /// Relative paths of all regular files below the directory, sorted; '/' between parts.
  const std::vector<std::string>& members() const;
  /// Relative paths of what is below the directory and is never opened, sorted: FIFOs, devices,
  /// sockets, and links to anything but a regular file inside of it.
  const std::vector<std::string>& refused() const;
  bool has_member(std::string_view relative) const;
  /// One of members(), mapped when asked for. The name may come from an untrusted file.
  Result<Source> member(std::string_view relative) const;
  /// The directory below `relative` as a source of its own.
  Result<Source> subdirectory(std::string_view relative) const;

 private:
  struct Body;
  explicit Source(std::shared_ptr<const Body> body) : body_(std::move(body)) {}
  std::shared_ptr<const Body> body_;
};

}  // namespace ckptverify
