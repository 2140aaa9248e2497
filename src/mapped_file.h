// A file mapped read-only, and the one place that knows what to do when its bytes are lost while
// they are read: a mapped file that shrinks, or whose disk fails, faults at the next touch.
#pragma once

#include <cstddef>
#include <string>

#include "ckptverify/bytes.h"

namespace ckptverify {

/// Unmapped when it ends. While it lives, a bus error inside of it names the file on standard error
/// and ends the process with 66, as an input that cannot be opened does; no reader can go on.
class MappedFile {
 public:
  MappedFile() = default;  // of an empty file
  /// Takes over `size` bytes that mmap() put at `start`; `name` is what the message calls the file.
  MappedFile(void* start, std::size_t size, const std::string& name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  Bytes bytes() const { return {static_cast<const std::byte*>(start_), size_}; }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
  struct Slot* slot_ = nullptr;  // in the register of live mappings
};

/// Has the system put the pages of a mapped file in place at once, which costs less than a fault
/// each. A hint: where the kernel does not know it (before Linux 5.14), reading is merely slower.
void fetch_pages(Bytes bytes);

}  // namespace ckptverify
