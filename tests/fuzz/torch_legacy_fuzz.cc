// Any bytes as a stream of torch.save: an error, or a checkpoint whose every tensor can be
// gathered.
#include <cstddef>
#include <cstdint>
#include <span>

#include "ckptverify/fingerprint.h"
#include "formats/torch_legacy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ckptverify;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto source = Source::memory("input", {bytes.begin(), bytes.end()});
  (void)sniff_torch_legacy(source);
  const auto checkpoint = read_torch_legacy(source, FormatTable({}));
  if (checkpoint) (void)fingerprint(*checkpoint, {1});
  return 0;
}
