// Any bytes as a plain pickle: an error, or a checkpoint whose every tensor can be gathered.
#include <cstddef>
#include <cstdint>
#include <span>

#include "ckptverify/fingerprint.h"
#include "formats/pickle_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ckptverify;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto source = Source::memory("input", {bytes.begin(), bytes.end()});
  (void)sniff_pickle_file(source);
  const auto checkpoint = read_pickle_file(source, FormatTable({}));
  if (checkpoint) (void)fingerprint(*checkpoint, {1});
  return 0;
}
