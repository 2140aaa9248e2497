// Threads are started for one list and joined at its end. A thread that the system refuses is done
// without: the work list is emptied by those that exist.
#include "src/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace ckptverify {
namespace {

std::size_t thread_count(Threads threads, std::size_t work_count) {
  const std::size_t wanted =
      threads.count != 0 ? threads.count : std::max(1U, std::thread::hardware_concurrency());
  return std::min(wanted, work_count);
}

}  // namespace

void for_each_index(std::size_t count, Threads threads,
                    const std::function<void(std::size_t index)>& body) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) {
      body(index);
    }
  };
  std::vector<std::jthread> others;
  try {
    for (std::size_t i = 1; i < thread_count(threads, count); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // Fewer threads: slower, and right.
  }
  work();
}

}  // namespace ckptverify
