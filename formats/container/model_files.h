// The files of a Hugging Face model directory, which trainers of that world write into their
// checkpoints as well: weights in one file or in indexed shards, PEFT adapters, settings, and the
// files that hold no state.
//
//   model.safetensors | model.safetensors.index.json + model-00001-of-0000N.safetensors
//   pytorch_model.bin | pytorch_model.bin.index.json + pytorch_model-00001-of-0000N.bin
//   adapter_model.safetensors | adapter_model.bin, with adapter_config.json; <adapter>/ for others
//   config.json, generation_config.json; tokenizer.json, README.md, ...
#pragma once

#include <string_view>

#include "formats/container/assembly.h"

namespace ckptverify {

/// What was found, whether or not it could be read.
struct ModelFiles {
  bool weights = false;   // a whole model
  bool adapters = false;  // PEFT
};

/// By names alone.
ModelFiles find_model_files(const Source& directory);

/// Weights under "model.", in the order in which transformers looks for them: where there are
/// several representations, the first is the model, the others are claimed and warned of. Adapters
/// without a model are said to be that.
ModelFiles add_model_files(Assembly& assembly);

/// config.json and its like as values, what else is known of such a directory as accessories.
void add_model_settings(Assembly& assembly);

}  // namespace ckptverify
