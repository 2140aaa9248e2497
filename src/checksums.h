// Says which stored checksums are wrong, from what a pass over the bytes found them to be.
#pragma once

#include <vector>

#include "ckptverify/finding.h"
#include "src/byte_pass.h"

namespace ckptverify {

/// The findings of "static.checksums": one for each that is wrong, one for all that are right.
std::vector<Finding> checksum_findings(const Checkpoint& checkpoint, const Pass& pass);

/// The bytes of files over which a stored checksum is wrong, sorted; and whether a tensor has some
/// of its own among such.
std::vector<ByteRange> damaged_ranges(const Checkpoint& checkpoint, const Pass& pass);
bool lies_in(const Tensor& tensor, const std::vector<ByteRange>& ranges);

}  // namespace ckptverify
