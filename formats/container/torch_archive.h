// What torch.save and LibTorch have in common: a zip archive with one top folder, a pickle of the
// objects, and a record for the bytes of every storage. Used for whole files and for the items
// that lie inside of larger ones.
//
//   <prefix>/data.pkl           the objects
//   <prefix>/data/<key>         a storage's bytes
//   <prefix>/byteorder          "little" or "big"; absent before 2.1, and then little
//   <prefix>/version            or .data/version
//   <prefix>/.format_version, .storage_alignment, .data/serialization_id
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "formats/container/zip.h"
#include "formats/encoding/pickle.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {

enum class TorchArchiveKind { kNone, kTorchSave, kLibTorch };

/// What the bytes look like, also where the end of the archive is cut off.
TorchArchiveKind torch_archive_kind(Bytes bytes);

struct TorchArchive {
  ArchivePlace place;
  std::string name;  // of the file, for people
  ZipArchive zip;
  std::string prefix;  // with its '/'
  ByteOrder byte_order = ByteOrder::kLittle;
  std::set<std::string> storages;  // names of the records that the objects refer to
  std::vector<Finding> findings;
  std::vector<std::string> uninterpreted;
  ReadNested read_nested = {};  // files inside of the pickle; none: they are not interpreted
};

/// Errors: those of read_zip(), and no top folder (layout). Records that are damaged or strange
/// become findings.
Result<TorchArchive> open_torch_archive(const ArchivePlace& place, std::string name);

/// The record of that name below the prefix, or null.
const ZipEntry* find_record(const TorchArchive& archive, std::string_view name);

/// The objects' pickle.
Result<PickleTree> read_archive_tree(TorchArchive& archive);

/// How tensors find their bytes. The archive must outlive it; it notes the storages it is asked
/// for. Errors: no such record, a record longer than its storage (layout), a shorter one (trunc).
TorchContext archive_context(TorchArchive& archive);

/// The objects as entries, the archive's claims, checksums and findings: all of it into the
/// checkpoint, whose file `place.file` the archive is in.
Result<void> read_archive_into(TorchArchive& archive, const PickleTree& tree,
                               Checkpoint& checkpoint);

}  // namespace ckptverify
