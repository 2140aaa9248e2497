// NumPy's files: .npy is one array, .npz a zip archive of them, stored or deflated. Numbers and
// truth values are tensors; strings, times, records and pickled objects are named as not
// interpreted.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_npy(const Source& source);
Result<Checkpoint> read_npy(const Source& source, const FormatTable& table);

bool sniff_npz(const Source& source);
Result<Checkpoint> read_npz(const Source& source, const FormatTable& table);

}  // namespace ckptverify
