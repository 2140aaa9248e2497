// The register of live mappings is the state that a signal handler needs and is global for that
// reason alone. Its slots are never freed, so that the handler may walk them at any moment; a
// slot's name belongs to the mapping, which lives while a thread reads it.
#include "src/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

namespace ckptverify {

/// `start` is written last and cleared first: a slot with a start is whole.
struct Slot {
  std::atomic<std::uintptr_t> start = 0;
  std::atomic<std::size_t> size = 0;
  std::atomic<const char*> name = nullptr;
  Slot* next_free = nullptr;
};

namespace {

constexpr int kExitNoInput = 66;  // sysexits.h: EX_NOINPUT
// Slots that are made at a time: a checkpoint has a few files or thousands.
constexpr std::size_t kBlockSlots = 256;

struct Block {
  std::array<Slot, kBlockSlots> slots;
  Block* next = nullptr;
};

std::atomic<Block*> first_block = nullptr;
Slot* first_free = nullptr;
std::mutex register_mutex;
struct sigaction previous_action {};

void print(std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

const Slot* slot_of(std::uintptr_t address) {
  for (const Block* block = first_block; block != nullptr; block = block->next) {
    for (const Slot& slot : block->slots) {
      const std::uintptr_t start = slot.start;
      if (start != 0 && address >= start && address - start < slot.size) return &slot;
    }
  }
  return nullptr;
}

/// Nothing but async-signal-safe calls. A bus error outside of every mapping is not ours.
void end_on_lost_bytes(int number, siginfo_t* details, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(details->si_addr);
  const Slot* slot = slot_of(address);
  if (slot == nullptr) {
    ::sigaction(number, &previous_action, nullptr);  // the fault comes again, to whoever was before
    return;
  }
  std::array<char, 24> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), address - slot->start).ptr;
  print("ckptverify: ");
  print(slot->name.load());
  print(": byte ");
  print({digits.data(), static_cast<std::size_t>(end - digits.data())});
  print(": the file shrank, or its disk failed, while it was read\n");
  ::_exit(kExitNoInput);
}

/// Called under the register's lock, when the first block is made.
void watch_for_lost_bytes() {
  struct sigaction action {};
  action.sa_sigaction = end_on_lost_bytes;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previous_action);
}

Slot* take_slot() {
  const std::lock_guard lock(register_mutex);
  if (first_free == nullptr) {
    if (first_block == nullptr) watch_for_lost_bytes();
    auto* block = new Block;  // never freed
    for (Slot& slot : block->slots) slot.next_free = std::exchange(first_free, &slot);
    block->next = first_block;
    first_block = block;
  }
  Slot* slot = first_free;
  first_free = slot->next_free;
  return slot;
}

}  // namespace

MappedFile::MappedFile(void* start, std::size_t size, const std::string& name)
    : start_(start), size_(size), slot_(take_slot()) {
  slot_->name = ::strdup(name.c_str());
  slot_->size = size;
  slot_->start = reinterpret_cast<std::uintptr_t>(start);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      slot_(std::exchange(other.slot_, nullptr)) {}

MappedFile::~MappedFile() {
  if (slot_ == nullptr) return;
  slot_->start = 0;
  ::free(const_cast<char*>(slot_->name.exchange(nullptr)));
  ::munmap(start_, size_);
  const std::lock_guard lock(register_mutex);
  slot_->next_free = std::exchange(first_free, slot_);
}

void fetch_pages(Bytes bytes) {
#if defined(MADV_POPULATE_READ)
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t start = address - address % page;
  ::madvise(reinterpret_cast<void*>(start), bytes.size() + (address - start), MADV_POPULATE_READ);
#else
  static_cast<void>(bytes);
#endif
}

}  // namespace ckptverify
