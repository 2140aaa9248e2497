// PyTorch distributed checkpoint (DCP).
//
//   .metadata            pickle: names -> chunks (offsets, sizes), (name, offsets) -> file, bytes
//   __0_0.distcp         | item | item | ... |   rank 0; an item is a whole torch.save archive
//   __1_0.distcp         | item | item | ... |   rank 1
#include "formats/dcp.h"

#include <utility>

#include "formats/container/dcp_reader.h"

namespace ckptverify {

bool sniff_dcp(const Source& source) {
  return source.is_directory() && has_dcp_files(source);
}

Result<Checkpoint> read_dcp(const Source& source, const FormatTable& table) {
  Assembly assembly("dcp", source, table);
  CKPTVERIFY_TRY_VOID(read_dcp_into(assembly));
  return std::move(assembly).finish();
}

}  // namespace ckptverify
