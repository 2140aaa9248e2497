// Our own sharded state directories (ckptverify.sharded/1): an index with a digest of its own, and
// shards that other formats' readers read once the index's digests have been found right. Every
// byte is covered by a digest. A folder that holds several such checkpoints is recognised to say
// which of them can be named.
#pragma once

#include "ckptverify/format.h"

namespace ckptverify {

bool sniff_sharded(const Source& source);
Result<Checkpoint> read_sharded(const Source& source, const FormatTable& table);

}  // namespace ckptverify
