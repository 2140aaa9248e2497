// Any bytes as the metadata of a distributed checkpoint, and as a directory: the first two bytes
// say where the metadata ends, the rest is the one file of items.
#include <algorithm>
#include <map>

#include "ckptverify/check.h"
#include "ckptverify/fingerprint.h"
#include "formats/container/dcp_metadata.h"
#include "formats/dcp.h"
#include "formats/formats.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  if (size < 2) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const std::size_t split = 2 + std::min<std::size_t>(data[0] | data[1] << 8, size - 2);
  std::map<std::string, std::vector<std::byte>> files;
  files[".metadata"] = {begin + 2, begin + split};
  files["__0_0.distcp"] = {begin + split, begin + size};
  const auto checkpoint = read_dcp(Source::memory_directory("fuzz", std::move(files)), formats());
  if (!checkpoint) return 0;
  check_checkpoint(*checkpoint, {.threads = {1}});
  // Nothing that does not tile is ever shown as a tensor.
  for (const Entry& entry : checkpoint->entries) {
    const auto* tensor = std::get_if<Tensor>(&entry.node);
    if (tensor != nullptr && !tensor->absent)
      CKPTVERIFY_ASSERT(static_cast<bool>(check_bounds(*tensor)));
  }
  return 0;
}
