// Checkpoints of Megatron-LM and Megatron Core: the directory of all iterations with its tracker,
// an iteration of the distributed format, and one of the legacy format with a directory a rank.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// The directory that --save names: the iteration that the tracker names is read.
bool sniff_megatron(const Source& source);
Result<Checkpoint> read_megatron(const Source& source, const FormatTable& table);

bool sniff_megatron_dist(const Source& source);
Result<Checkpoint> read_megatron_dist(const Source& source, const FormatTable& table);

bool sniff_megatron_legacy(const Source& source);
Result<Checkpoint> read_megatron_legacy(const Source& source, const FormatTable& table);

}  // namespace ckptverify
