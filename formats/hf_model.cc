// A Hugging Face model directory: weights alone, no state of a run.
//
//   model.safetensors, or model.safetensors.index.json and model-00001-of-0000N.safetensors,
//   or the same as pytorch_model*.bin, or adapter_model.safetensors and adapter_config.json
//   config.json, generation_config.json    settings
//   tokenizer.json, README.md, ...         no state
#include "formats/hf_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "formats/container/checkpoint_names.h"
#include "formats/container/directory_names.h"
#include "formats/container/model_files.h"

namespace ckptverify {

namespace {

/// A script that names its files after components calls the weights as transformers does.
bool has_state_beside(const Source& source) {
  const std::vector<std::string> files = top_files(source);
  return std::any_of(files.begin(), files.end(), [](const std::string& name) {
    if (!has_checkpoint_extension(name)) return false;
    const Component component = component_of_key(name.substr(0, name.rfind('.')));
    return component != Component::kModel && component != Component::kConfig &&
           component != Component::kOther;
  });
}

}  // namespace

bool sniff_hf_model(const Source& source) {
  if (!source.is_directory() || has_state_beside(source)) return false;
  const ModelFiles files = find_model_files(source);
  return files.weights || files.adapters;
}

Result<Checkpoint> read_hf_model(const Source& source, const FormatTable& table) {
  Assembly assembly("hf-model", source, table);
  add_model_files(assembly);
  add_model_settings(assembly);
  // Trainer.save_model() leaves its arguments beside the final model.
  assembly.add("training_args.bin",
               {.root = "training_args.", .component = Component::kConfig, .component_root = 0});
  // The output directory of a run also holds its checkpoints, which are checkpoints of their own.
  for (const std::string& name : top_directories(source))
    // DCP's writer keeps the shards that it has consolidated below, as a checkpoint of their own.
    if (number_between(name, "checkpoint-", "") || name == "sharded") assembly.leave_out(name);
  return std::move(assembly).finish();
}

}  // namespace ckptverify
