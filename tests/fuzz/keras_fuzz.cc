// Any bytes as a model that Keras saved: an error or a checkpoint, whose tensors are gathered.
#include "ckptverify/fingerprint.h"
#include "formats/formats.h"
#include "formats/keras.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const Source source = Source::memory("fuzz.keras", {begin, begin + size});
  (void)sniff_keras(source);
  const auto checkpoint = read_keras(source, formats());
  // A damaged member is found when it is decoded.
  if (checkpoint) static_cast<void>(fingerprint(*checkpoint, Threads{1}));
  return 0;
}
