// What C++ torch::save writes (modules, optimizers, tensors, output archives), and TorchScript
// files as far as they hold state: parameters, buffers and attributes, not the program.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_libtorch_archive(const Source& source);
Result<Checkpoint> read_libtorch_archive(const Source& source, const FormatTable& table);

}  // namespace ckptverify
