// A checkpoint of DeepSpeed: the directory that save_checkpoint() was given, with `latest` and a
// directory a tag, or one of those directories by itself. ZeRO's partitions are put together, so
// that what is read does not depend on how many ranks wrote it.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_deepspeed(const Source& source);
Result<Checkpoint> read_deepspeed(const Source& source, const FormatTable& table);

}  // namespace ckptverify
