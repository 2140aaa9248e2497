// Any bytes as two files of an iteration, cut where their first two bytes say, beside a sound
// tracker: of the distributed format, of the legacy one, and of two ranks. An error or a
// checkpoint, whose tensors are gathered.
#include <algorithm>

#include "ckptverify/fingerprint.h"
#include "formats/formats.h"
#include "formats/megatron.h"

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
  constexpr std::size_t kPrefix = 2;
  if (size < kPrefix) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data) + kPrefix;
  const auto* end = begin + (size - kPrefix);
  const std::size_t wanted = std::size_t{data[0]} * 256 + data[1];
  const auto* middle = begin + std::min(wanted, size - kPrefix);
  const std::string folder = "iter_0000005/";
  read({{folder + "metadata.json",
         bytes_of(R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})")},
        {folder + "common.pt", {begin, middle}},
        {folder + ".metadata", {middle, end}},
        {folder + "__0_0.distcp", std::vector<std::byte>(64)}});
  read({{folder + "mp_rank_00/model_optim_rng.pt", {begin, middle}},
        {folder + "mp_rank_01/model_optim_rng.pt", {middle, end}}});
  return 0;
}
