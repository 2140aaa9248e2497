// Any text as index.json: an error, or an index whose references all lead somewhere.
#include "formats/sharded_index.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace ckptverify;
  const auto index = parse_sharded_index({reinterpret_cast<const char*>(data), size});
  if (!index) return 0;
  for (const ShardedTensor& tensor : index->tensors)
    CKPTVERIFY_ASSERT(tensor.shard < index->shards.size());
  for (const ShardedAlias& alias : index->aliases)
    CKPTVERIFY_ASSERT(alias.tensor < index->tensors.size());
  return 0;
}
