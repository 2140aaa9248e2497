// Any text as a model's index: an error, or plain names alone.
#include "ckptverify/result.h"
#include "formats/container/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto index = parse_shard_index({reinterpret_cast<const char*>(data), size});
  if (!index) return 0;
  for (const auto& [tensor, file] : index->file_of)
    CKPTVERIFY_ASSERT(!file.empty() && file.find('/') == std::string::npos && file != "..");
  return 0;
}
