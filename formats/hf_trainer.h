// Reads checkpoints of the Hugging Face Trainer, complete or not.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// A directory with trainer_state.json, or one that without it can be nothing else.
bool sniff_hf_trainer(const Source& source);

Result<Checkpoint> read_hf_trainer(const Source& source, const FormatTable& table);

}  // namespace ckptverify
