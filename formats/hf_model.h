// Reads model directories as Hugging Face's save_pretrained and PEFT write them.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// A directory with weights or adapters under Hugging Face's names.
bool sniff_hf_model(const Source& source);

Result<Checkpoint> read_hf_model(const Source& source, const FormatTable& table);

}  // namespace ckptverify
