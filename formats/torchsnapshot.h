// A snapshot of torchsnapshot: a manifest that is written when all ranks have finished, and the
// bytes of each tensor by location and range.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_torchsnapshot(const Source& source);
Result<Checkpoint> read_torchsnapshot(const Source& source, const FormatTable& table);

}  // namespace ckptverify
