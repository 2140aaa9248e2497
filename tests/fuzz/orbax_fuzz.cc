// Any bytes as the tree of an Orbax item: an error or a checkpoint.
#include "formats/formats.h"
#include "formats/orbax.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const Source directory = Source::memory_directory("fuzz", {{"_METADATA", {begin, begin + size}}});
  static_cast<void>(read_orbax(directory, formats()));
  return 0;
}
