// torch.save.
//
//   zip: | <p>/data.pkl | <p>/byteorder, ... | <p>/data/0 | <p>/data/1 | ... | <p>/version | end |
//
//   data.pkl: the object; a tensor is a call of torch._utils._rebuild_tensor_v2 on a persistent id
//   that names the record with its storage's bytes.
#include "formats/torch_zip.h"

#include "formats/container/torch_file.h"

namespace ckptverify {

bool sniff_torch_zip(const Source& source) {
  return !source.is_directory() &&
         torch_archive_kind(source.bytes()) == TorchArchiveKind::kTorchSave;
}

Result<Checkpoint> read_torch_zip(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(auto archive, open_torch_archive({.bytes = source.bytes()}, source.name()));
  CKPTVERIFY_TRY(const auto tree, read_archive_tree(archive));
  return archive_checkpoint("torch-zip", source, archive, tree);
}

}  // namespace ckptverify
