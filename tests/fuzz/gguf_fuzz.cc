// Any bytes as a gguf file: an error or a checkpoint whose every tensor can be gathered.
#include "ckptverify/fingerprint.h"
#include "formats/formats.h"
#include "formats/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const auto checkpoint = read_gguf(Source::memory("fuzz", {begin, begin + size}), formats());
  if (checkpoint) CKPTVERIFY_ASSERT(fingerprint(*checkpoint, Threads{1}));
  return 0;
}
