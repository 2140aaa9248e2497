// torch.save files since 1.6, and what C++ torch::pickle_save writes: a zip archive with one pickle
// and a record for each storage. Tensors are views of the file.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_torch_zip(const Source& source);
Result<Checkpoint> read_torch_zip(const Source& source, const FormatTable& table);

}  // namespace ckptverify
