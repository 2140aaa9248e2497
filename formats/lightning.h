// Reads sharded checkpoints of Lightning and Fabric. One file of Lightning is a torch.save file.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// A directory of DCP files with meta.pt beside them, or with a name that ends in ".ckpt".
bool sniff_lightning(const Source& source);

Result<Checkpoint> read_lightning(const Source& source, const FormatTable& table);

}  // namespace ckptverify
