// Reads a directory of plain torch.save or safetensors files: one a rank, one a component, or one
// for everything.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// A directory whose top files are checkpoints by their extension, and not several of one series.
bool sniff_rank_files(const Source& source);

Result<Checkpoint> read_rank_files(const Source& source, const FormatTable& table);

}  // namespace ckptverify
