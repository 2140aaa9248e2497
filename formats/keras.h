// A model saved by Keras 3: a zip archive of its architecture and its weights, which are an HDF5
// file or a NumPy archive.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_keras(const Source& source);
Result<Checkpoint> read_keras(const Source& source, const FormatTable& table);

}  // namespace ckptverify
