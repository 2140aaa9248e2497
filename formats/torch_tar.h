// What torch.save wrote before 0.2: a tar archive. Tensors are views of the file.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_torch_tar(const Source& source);
Result<Checkpoint> read_torch_tar(const Source& source, const FormatTable& table);

}  // namespace ckptverify
