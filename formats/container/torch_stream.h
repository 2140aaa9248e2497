// The stream that torch.save wrote before 1.6, and still writes with
// _use_new_zipfile_serialization=False: five pickles one after the other, then the storages, with
// nothing in between and no checksum anywhere. Used for whole files and for those inside of
// pickles.
//
//   | magic | 1001 | system | object | keys | count, elements | count, elements | ...
//
//   magic    a pickled integer, 0x1950a86a20f9469cfc6c
//   1001     a pickled integer, the version of the protocol
//   system   {protocol_version: 1001, little_endian: bool, type_sizes: {...}}
//   object   the state; a storage is ('storage', class, key, location, count, view or None)
//   keys     a list of the storages' keys, in the order in which they follow
//   count    8 bytes, little-endian: elements of the storage's class
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "formats/container/zip.h"
#include "formats/encoding/pickle.h"
#include "formats/encoding/torch_tensor.h"

namespace ckptverify {

/// Whether the bytes begin with the pickled magic number, of any protocol.
bool is_torch_stream(Bytes bytes);

struct TorchStream {
  struct Storage {
    std::uint64_t count = 0;      // elements, as the object says
    std::uint64_t size = 0;       // bytes
    std::uint64_t offset = 0;     // of its bytes; absolute
    std::uint64_t reference = 0;  // of the persistent id
    bool stored = false;
  };
  ArchivePlace place;
  std::string name;  // of the file, for people
  PickleTree tree;   // the object's
  std::map<std::string, Storage> storages;
  std::vector<OwnedRange> claims;
  std::vector<Finding> findings;
};

/// Errors: the file ends early (trunc); a storage without a reference or the other way round, or of
/// another size than the object says (layout). Bytes after the last storage are a finding.
Result<TorchStream> open_torch_stream(const ArchivePlace& place, std::string name);

/// How tensors find their bytes. The stream must outlive it.
TorchContext stream_context(const TorchStream& stream);

}  // namespace ckptverify
