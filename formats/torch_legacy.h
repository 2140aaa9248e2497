// torch.save files of before 1.6, and of today with _use_new_zipfile_serialization=False. Tensors
// are views of the file.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_torch_legacy(const Source& source);
Result<Checkpoint> read_torch_legacy(const Source& source, const FormatTable& table);

}  // namespace ckptverify
