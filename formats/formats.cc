// The table of formats. A new format is a pair of files and a row: docs/adding-a-format.md.
#include "formats/formats.h"

#include <array>

#include "formats/hdf5.h"
#include "formats/libtorch_archive.h"
#include "formats/safetensors.h"
#include "formats/sharded.h"
#include "formats/torch_zip.h"

namespace ckptverify {
namespace {

constexpr std::array kRows = {
    Format{
        .name = "sharded",
        .title = "sharded state directory (ckptverify.sharded/1)",
        .files = "a directory: shards of HDF5, safetensors or LibTorch, index.json and its digest",
        .checksums = "XXH3-128 of every file",
        .sniff = sniff_sharded,
        .read = read_sharded},
    Format{.name = "libtorch-archive",
           .title = "LibTorch and TorchScript archive",
           .files = "one zip file with constants.pkl",
           .checksums = "CRC-32 of every record",
           .sniff = sniff_libtorch_archive,
           .read = read_libtorch_archive},
    Format{.name = "torch-zip",
           .title = "torch.save",
           .files = "one zip file with data.pkl and a record for each storage",
           .checksums = "CRC-32 of every record, unless it was switched off",
           .sniff = sniff_torch_zip,
           .read = read_torch_zip},
    Format{.name = "safetensors",
           .title = "safetensors",
           .files = "one file: a JSON header and one buffer",
           .checksums = "none",
           .sniff = sniff_safetensors,
           .read = read_safetensors},
    Format{.name = "hdf5",
           .title = "HDF5 (Keras, h5py)",
           .files = "one file of groups and datasets",
           .checksums = "Fletcher-32 a chunk where the writer asked for it; our xxh3 attributes",
           .sniff = sniff_hdf5,
           .read = read_hdf5},
};

}  // namespace

FormatTable formats() {
  return FormatTable(kRows);
}

}  // namespace ckptverify
