// Any bytes as an npz file: an error or a checkpoint, whose tensors are gathered.
#include "ckptverify/fingerprint.h"
#include "formats/formats.h"
#include "formats/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const auto checkpoint = read_npz(Source::memory("fuzz", {begin, begin + size}), formats());
  // A damaged deflate stream is found when it is decoded.
  if (checkpoint) static_cast<void>(fingerprint(*checkpoint, Threads{1}));
  return 0;
}
