// safetensors: a JSON header and one buffer that the tensors tile without a hole. The reader is the
// format's validator: it accepts nothing that Hugging Face's own one refuses, and refuses duplicate
// keys as well. The format has no checksum.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_safetensors(const Source& source);
Result<Checkpoint> read_safetensors(const Source& source, const FormatTable& table);

}  // namespace ckptverify
