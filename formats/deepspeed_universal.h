// DeepSpeed's universal checkpoint: what its ds_to_universal makes of the ranks' partitions, one
// directory a parameter with its whole weights and optimizer state.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_deepspeed_universal(const Source& source);
Result<Checkpoint> read_deepspeed_universal(const Source& source, const FormatTable& table);

}  // namespace ckptverify
