// Memory for the small arrays of a pickle's nodes: taken a block at a time, given back all at once.
// Only for types without destructors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace ckptverify {

class PickleArena {
 public:
  /// Uninitialised.
  template <class T>
  T* take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return static_cast<T*>(take_bytes(count * sizeof(T)));
  }

  template <class T>
  T* copy(std::span<const T> from) {
    T* to = take<T>(from.size());
    std::uninitialized_copy(from.begin(), from.end(), to);
    return to;
  }

  /// Room for `more` behind the `count` items of an array. Its capacity is always count rounded up
  /// to a power of two, so that nobody has to remember it.
  template <class T>
  void reserve(T*& array, std::uint32_t count, std::size_t more) {
    const std::size_t wanted = std::size_t{count} + more;
    if (wanted <= (count == 0 ? 0 : std::bit_ceil(std::size_t{count}))) return;
    T* larger = take<T>(std::bit_ceil(wanted));
    std::uninitialized_copy(array, array + count, larger);
    array = larger;
  }

  template <class T>
  void append(T*& array, std::uint32_t& count, std::span<const T> items) {
    reserve(array, count, items.size());
    std::uninitialized_copy(items.begin(), items.end(), array + count);
    count += static_cast<std::uint32_t>(items.size());
  }

 private:
  static constexpr std::size_t kAlignment = 8;
  // Doubled from block to block: small pickles stay small.
  static constexpr std::size_t kFirstBlock = 4096;
  static constexpr std::size_t kLargestBlock = 1 << 20;

  void* take_bytes(std::size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (size > left_) {
      block_ = std::min(std::max(kFirstBlock, 2 * block_), kLargestBlock);
      left_ = std::max(size, block_);
      blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
      next_ = blocks_.back().get();
    }
    void* taken = next_;
    next_ += size;
    left_ -= size;
    return taken;
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t block_ = 0;
};

}  // namespace ckptverify
