// GGUF, the file of ggml and llama.cpp: a model's tensors behind their metadata. Elements that
// PyTorch has too are tensors; blocks of quantized ones are composites that hold the blocks' bytes
// as they are stored.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_gguf(const Source& source);
Result<Checkpoint> read_gguf(const Source& source, const FormatTable& table);

}  // namespace ckptverify
