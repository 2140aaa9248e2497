// HDF5 files of tensors, as Keras, h5py and our reference trainer write them: each dataset is a
// tensor under its groups' names joined by '.', each attribute a value. The superblock is checked
// here; where the data lie is asked of the HDF5 library in a limited child process.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_hdf5(const Source& source);
Result<Checkpoint> read_hdf5(const Source& source, const FormatTable& table);

}  // namespace ckptverify
