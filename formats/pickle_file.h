// A file that is one pickle, of any protocol, with exactly its bytes. Tensors in it are torch.save
// files of their own, inside of the pickle.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

/// A pickle of protocol 2 or later by its first bytes; one of protocol 0 or 1, which has none, by
/// reading it.
bool sniff_pickle_file(const Source& source);
Result<Checkpoint> read_pickle_file(const Source& source, const FormatTable& table);

}  // namespace ckptverify
