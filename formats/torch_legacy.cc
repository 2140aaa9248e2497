// torch.save's old stream.
//
//   | magic | 1001 | system | object | keys | count, elements | count, elements | ...
//
//   The first five are pickles, each ending where the next begins; then a storage for each key.
#include "formats/torch_legacy.h"

#include "formats/container/torch_file.h"

namespace ckptverify {

bool sniff_torch_legacy(const Source& source) {
  return !source.is_directory() && is_torch_stream(source.bytes());
}

Result<Checkpoint> read_torch_legacy(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(auto stream, open_torch_stream({.bytes = source.bytes()}, source.name()));
  return stream_checkpoint("torch-legacy", source, stream);
}

}  // namespace ckptverify
