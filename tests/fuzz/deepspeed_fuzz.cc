// Any bytes as a model's file and a partition's, cut where their first two bytes say: an error or a
// checkpoint, whose tensors are gathered.
#include "ckptverify/fingerprint.h"
#include "formats/deepspeed.h"
#include "formats/formats.h"
#include "tests/fuzz/cut_in_two.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto [first, second] = cut_in_two(data, size);
  const Source directory =
      Source::memory_directory("fuzz", {{"mp_rank_00_model_states.pt", first},
                                        {"zero_pp_rank_0_mp_rank_00_optim_states.pt", second}});
  const auto checkpoint = read_deepspeed(directory, formats());
  // A damaged record is found when it is decoded.
  if (checkpoint) static_cast<void>(fingerprint(*checkpoint, Threads{1}));
  return 0;
}
