// The table of formats. A new format is a pair of files and a row:
// docs/adding-a-format.md.
#include "formats/formats.h"

#include <array>

#include "formats/accelerate.h"
#include "formats/dcp.h"
#include "formats/dcp_safetensors.h"
#include "formats/hdf5.h"
#include "formats/hf_model.h"
#include "formats/hf_trainer.h"
#include "formats/libtorch_archive.h"
#include "formats/lightning.h"
#include "formats/pickle_file.h"
#include "formats/rank_files.h"
#include "formats/safetensors.h"
#include "formats/sharded.h"
#include "formats/torch_legacy.h"
#include "formats/torch_zip.h"

namespace ckptverify {
namespace {

constexpr std::array kRows = {
    Format{.name = "sharded",
           .title = "sharded state directory (ckptverify.sharded/1)",
           .files = "a directory: shards of HDF5, safetensors or LibTorch, "
                    "index.json and its digest",
           .checksums = "XXH3-128 of every file",
           .sniff = sniff_sharded,
           .read = read_sharded},
    Format{.name = "hf-trainer",
           .title = "Hugging Face Trainer checkpoint",
           .files = "a directory: trainer_state.json, weights, optimizer.pt, "
                    "rng_state*.pth",
           .checksums = "those of its torch.save files",
           .sniff = sniff_hf_trainer,
           .read = read_hf_trainer},
    Format{.name = "accelerate",
           .title = "Accelerate save_state",
           .files =
               "a directory: random_states_<rank>.pkl, weights, optimizer.bin",
           .checksums = "those of its torch.save files",
           .sniff = sniff_accelerate,
           .read = read_accelerate},
    Format{.name = "lightning",
           .title = "Lightning sharded checkpoint",
           .files = "a directory: DCP files and meta.pt",
           .checksums = "those of its torch.save files",
           .sniff = sniff_lightning,
           .read = read_lightning},
    Format{.name = "dcp",
           .title = "PyTorch distributed checkpoint (DCP)",
           .files = "a directory: .metadata and __<rank>_<n>.distcp",
           .checksums = "CRC-32 of every record of every item; none for .metadata",
           .sniff = sniff_dcp,
           .read = read_dcp},
    Format{.name = "dcp-safetensors",
           .title = "PyTorch distributed checkpoint in safetensors, not consolidated",
           .files = "a directory: shard-<rank>-model-<n>-of-<count>.safetensors",
           .checksums = "none",
           .sniff = sniff_dcp_safetensors,
           .read = read_dcp_safetensors},
    Format{.name = "hf-model",
           .title = "Hugging Face model or PEFT adapter",
           .files = "a directory: weights in one file or in indexed shards, "
                    "config.json",
           .checksums = "none in safetensors; those of torch.save files",
           .sniff = sniff_hf_model,
           .read = read_hf_model},
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
    Format{.name = "torch-legacy",
           .title = "torch.save, the stream of before 1.6",
           .files = "one file: five pickles, then the bytes of each storage",
           .checksums = "none",
           .sniff = sniff_torch_legacy,
           .read = read_torch_legacy},
    Format{.name = "safetensors",
           .title = "safetensors",
           .files = "one file: a JSON header and one buffer",
           .checksums = "none",
           .sniff = sniff_safetensors,
           .read = read_safetensors},
    Format{.name = "hdf5",
           .title = "HDF5 (Keras, h5py)",
           .files = "one file of groups and datasets",
           .checksums = "Fletcher-32 a chunk where the writer asked for it; "
                        "our xxh3 attributes",
           .sniff = sniff_hdf5,
           .read = read_hdf5},
    Format{.name = "rank-files",
           .title = "directory of plain files, one a rank or one a component",
           .files = "a directory: rank0.pt, rank1.pt, ...; ckpt.pt, "
                    "rng_state_0.pth; model.pt",
           .checksums = "those of its files",
           .sniff = sniff_rank_files,
           .read = read_rank_files},
    Format{.name = "pickle",
           .title = "plain pickle",
           .files = "one file that is one pickle, of any protocol",
           .checksums = "none",
           .sniff = sniff_pickle_file,
           .read = read_pickle_file},
};

} // namespace

FormatTable formats() { return FormatTable(kRows); }

} // namespace ckptverify
