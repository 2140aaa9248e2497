// Any bytes as a directory in memory: names and contents cut out of the input by a first byte that
// picks a name and a second that gives a length. An error or a result, never a crash.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "formats/collection.h"
#include "formats/formats.h"

namespace {

constexpr std::array kNames = {"trainer_state.json",
                               "model.safetensors",
                               "model.safetensors.index.json",
                               "model-00001-of-00002.safetensors",
                               "model-00002-of-00002.safetensors",
                               "optimizer.pt",
                               "optimizer.bin",
                               "scheduler.pt",
                               "rng_state_0.pth",
                               "random_states_1.pkl",
                               "custom_checkpoint_0.pkl",
                               "adapter_config.json",
                               "config.json",
                               "meta.pt",
                               ".metadata",
                               "__0_0.distcp",
                               "rank0.pt",
                               "rank3.pt",
                               "latest",
                               "checkpoint-5/trainer_state.json",
                               "checkpoint-10/model.safetensors",
                               "global_step5/mp_rank_00_model_states.pt",
                               "optimizer_0/.metadata",
                               "ckpt_5.pt"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  std::map<std::string, std::vector<std::byte>> files;
  for (std::size_t i = 0; i + 1 < size;) {
    const std::string name = kNames[data[i] % kNames.size()];
    const std::size_t end = std::min(size, i + 2 + std::size_t{data[i + 1]} * 8);
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    files[name].assign(begin + i + 2, begin + end);
    i = end;
  }
  const auto source = Source::memory_directory("checkpoint-5", std::move(files));
  (void)find_collection(source, formats());
  (void)formats().read(source);
  return 0;
}
