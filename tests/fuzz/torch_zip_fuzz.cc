// Any bytes through the torch-zip reader: an error or a result, never a crash.
#include <cstddef>
#include <cstdint>
#include <span>

#include "ckptverify/fingerprint.h"
#include "formats/torch_zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ckptverify;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto source = Source::memory("input", {bytes.begin(), bytes.end()});
  (void)sniff_torch_zip(source);
  const auto checkpoint = read_torch_zip(source, FormatTable({}));
  if (checkpoint) (void)verify_checksums(*checkpoint, {1});
  return 0;
}
