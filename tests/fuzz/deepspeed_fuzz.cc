// Any bytes as a model's file and a partition's, cut where their first two bytes say: an error or a
// checkpoint, whose tensors are gathered.
#include <algorithm>

#include "ckptverify/fingerprint.h"
#include "formats/deepspeed.h"
#include "formats/formats.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  constexpr std::size_t kPrefix = 2;
  if (size < kPrefix) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data) + kPrefix;
  const auto* end = begin + (size - kPrefix);
  const std::size_t wanted = std::size_t{data[0]} * 256 + data[1];
  const auto* middle = begin + std::min(wanted, size - kPrefix);
  const Source directory = Source::memory_directory(
      "fuzz", {{"mp_rank_00_model_states.pt", {begin, middle}},
               {"zero_pp_rank_0_mp_rank_00_optim_states.pt", {middle, end}}});
  const auto checkpoint = read_deepspeed(directory, formats());
  // A damaged record is found when it is decoded.
  if (checkpoint) static_cast<void>(fingerprint(*checkpoint, Threads{1}));
  return 0;
}
