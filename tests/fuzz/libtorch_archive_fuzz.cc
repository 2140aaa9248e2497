// Any bytes through the libtorch-archive reader: an error or a result, never a crash.
#include <cstddef>
#include <cstdint>
#include <span>

#include "ckptverify/fingerprint.h"
#include "formats/libtorch_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ckptverify;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto source = Source::memory("input", {bytes.begin(), bytes.end()});
  (void)sniff_libtorch_archive(source);
  const auto checkpoint = read_libtorch_archive(source, FormatTable({}));
  if (checkpoint) (void)verify_checksums(*checkpoint, {1});
  return 0;
}
