// A checkpoint of Orbax (JAX): recognised, complete or not, and its tree with types and shapes as
// far as its own JSON tells. The arrays are in OCDBT or Zarr stores, which are not interpreted.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_orbax(const Source& source);
Result<Checkpoint> read_orbax(const Source& source, const FormatTable& table);

}  // namespace ckptverify
