// Any bytes as two files of an iteration, cut where their first two bytes say, beside a sound
// tracker: of the distributed format, of the legacy one, and of two ranks. An error or a
// checkpoint, whose tensors are gathered.
#include "ckptverify/fingerprint.h"
#include "formats/formats.h"
#include "formats/megatron.h"
#include "tests/fuzz/cut_in_two.h"

namespace {

using namespace ckptverify;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

void read(std::map<std::string, std::vector<std::byte>> files) {
  files.emplace("latest_checkpointed_iteration.txt", bytes_of("5"));
  const Source directory = Source::memory_directory("fuzz", std::move(files));
  const auto checkpoint = read_megatron(directory, formats());
  // A damaged record is found when it is decoded.
  if (checkpoint) static_cast<void>(fingerprint(*checkpoint, Threads{1}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto [first, second] = cut_in_two(data, size);
  const std::string folder = "iter_0000005/";
  read({{folder + "metadata.json",
         bytes_of(R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})")},
        {folder + "common.pt", first},
        {folder + ".metadata", second},
        {folder + "__0_0.distcp", std::vector<std::byte>(64)}});
  read({{folder + "mp_rank_00/model_optim_rng.pt", first},
        {folder + "mp_rank_01/model_optim_rng.pt", second}});
  return 0;
}
