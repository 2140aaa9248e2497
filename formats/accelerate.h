// Reads what Accelerate's save_state writes.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// A directory with random_states_<rank>.pkl, or with its optimizer.bin beside a model.
bool sniff_accelerate(const Source& source);

Result<Checkpoint> read_accelerate(const Source& source, const FormatTable& table);

}  // namespace ckptverify
