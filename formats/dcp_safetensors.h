// Hugging Face storage of PyTorch distributed checkpoints: each rank writes safetensors files of
// its own chunks, and their headers say where in the whole tensor each begins. There is no index.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_dcp_safetensors(const Source& source);
Result<Checkpoint> read_dcp_safetensors(const Source& source, const FormatTable& table);

}  // namespace ckptverify
