// Any bytes as the manifest of a snapshot beside one file: an error or a checkpoint whose every
// tensor can be gathered.
#include "ckptverify/fingerprint.h"
#include "formats/formats.h"
#include "formats/torchsnapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const Source directory = Source::memory_directory(
      "fuzz", {{".snapshot_metadata", {begin, begin + size}}, {"0/a", std::vector<std::byte>(96)}});
  const auto checkpoint = read_torchsnapshot(directory, formats());
  if (checkpoint) CKPTVERIFY_ASSERT(fingerprint(*checkpoint, Threads{1}));
  return 0;
}
