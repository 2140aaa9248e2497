// What all files of torch.save have in common, once their container is open: the objects as
// entries, components, aliases. And such a file inside of another one's pickle.
#pragma once

#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "formats/container/torch_archive.h"
#include "formats/container/torch_stream.h"

namespace ckptverify {

/// The checkpoint that is one archive, whose pickle is `tree`.
Result<Checkpoint> archive_checkpoint(std::string format, const Source& source,
                                      TorchArchive& archive, const PickleTree& tree);
Result<Checkpoint> stream_checkpoint(std::string format, const Source& source, TorchStream& stream);

/// Reads a torch.save file that a pickle holds as bytes; the result's runs own them, and its
/// checksums are verified. `depth` files may be inside of each other.
ReadNested nested_reader(std::string name, unsigned depth);
/// PyTorch itself nests a storage in a pickle, and pickles of its own users once more.
inline constexpr unsigned kNestedFilesMax = 3;

}  // namespace ckptverify
