// PyTorch distributed checkpoints: the metadata's chunks and objects, proven by the items of every
// rank's files.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_dcp(const Source& source);
Result<Checkpoint> read_dcp(const Source& source, const FormatTable& table);

}  // namespace ckptverify
