// Any bytes through the pickle machine: an error or a result, never a crash.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/encoding/pickle.h"
#include "formats/encoding/torch_objects.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ckptverify;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto tree = read_pickle(bytes);
  if (!tree) return 0;
  const auto find = [bytes](const StorageReference& storage) -> Result<Run> {
    const auto run = slice(bytes, 0, storage.size);
    if (!run) return run.error();
    return Run{.stored_size = storage.size, .size = storage.size};
  };
  const auto objects = read_torch_objects(*tree, {.find = find});
  if (objects) CKPTVERIFY_ASSERT(tree->end() <= size);
  return 0;
}
