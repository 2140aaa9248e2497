// The table of formats. A new format is a pair of files and a row: docs/adding-a-format.md.
#include "formats/formats.h"

#include <array>

#include "formats/accelerate.h"
#include "formats/dcp.h"
#include "formats/dcp_safetensors.h"
#include "formats/deepspeed.h"
#include "formats/deepspeed_universal.h"
#include "formats/gguf.h"
#include "formats/hdf5.h"
#include "formats/hf_model.h"
#include "formats/hf_trainer.h"
#include "formats/keras.h"
#include "formats/libtorch_archive.h"
#include "formats/lightning.h"
#include "formats/megatron.h"
#include "formats/npy.h"
#include "formats/orbax.h"
#include "formats/pickle_file.h"
#include "formats/rank_files.h"
#include "formats/safetensors.h"
#include "formats/sharded.h"
#include "formats/torch_legacy.h"
#include "formats/torch_tar.h"
#include "formats/torch_zip.h"
#include "formats/torchsnapshot.h"

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
    Format{.name = "hf-trainer",
           .title = "Hugging Face Trainer checkpoint",
           .files = "a directory: trainer_state.json, weights, optimizer.pt, rng_state*.pth",
           .checksums = "those of its torch.save files",
           .sniff = sniff_hf_trainer,
           .read = read_hf_trainer},
    Format{.name = "accelerate",
           .title = "Accelerate save_state",
           .files = "a directory: random_states_<rank>.pkl, weights, optimizer.bin",
           .checksums = "those of its torch.save files",
           .sniff = sniff_accelerate,
           .read = read_accelerate},
    Format{.name = "lightning",
           .title = "Lightning sharded checkpoint",
           .files = "a directory: DCP files and meta.pt",
           .checksums = "those of its torch.save files",
           .sniff = sniff_lightning,
           .read = read_lightning},
    Format{.name = "deepspeed-universal",
           .title = "DeepSpeed universal checkpoint",
           .files = "a directory: one a parameter below zero/",
           .checksums = "CRC-32 of every record",
           .sniff = sniff_deepspeed_universal,
           .read = read_deepspeed_universal},
    Format{.name = "deepspeed",
           .title = "DeepSpeed (ZeRO 0 to 3, pipelines)",
           .files = "a directory: latest and a directory a tag, or one of those",
           .checksums = "CRC-32 of every record",
           .sniff = sniff_deepspeed,
           .read = read_deepspeed},
    Format{.name = "megatron",
           .title = "Megatron, all iterations",
           .files = "a directory: latest_checkpointed_iteration.txt, iter_*/ or release/",
           .checksums = "those of the iteration",
           .sniff = sniff_megatron,
           .read = read_megatron},
    Format{.name = "megatron-dist",
           .title = "Megatron Core distributed checkpoint",
           .files = "a directory: metadata.json, .metadata, *.distcp, common.pt",
           .checksums = "CRC-32 of every record; SHA-256 of every file in integrity.json",
           .sniff = sniff_megatron_dist,
           .read = read_megatron_dist},
    Format{.name = "megatron-legacy",
           .title = "Megatron legacy checkpoint",
           .files = "a directory: mp_rank_*/model_optim_rng.pt",
           .checksums = "CRC-32 of every record",
           .sniff = sniff_megatron_legacy,
           .read = read_megatron_legacy},
    Format{.name = "torchsnapshot",
           .title = "torchsnapshot",
           .files = "a directory: .snapshot_metadata and the files that it names",
           .checksums = "CRC-32 of objects",
           .sniff = sniff_torchsnapshot,
           .read = read_torchsnapshot},
    Format{.name = "orbax",
           .title = "Orbax (JAX); its arrays are not interpreted",
           .files = "a directory: _CHECKPOINT_METADATA, _METADATA, OCDBT or Zarr stores",
           .checksums = "none that is verified",
           .sniff = sniff_orbax,
           .read = read_orbax},
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
           .files = "a directory: weights in one file or in indexed shards, config.json",
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
    Format{.name = "torch-tar",
           .title = "torch.save, the tar archive of before 0.2",
           .files = "one tar file: sys_info, storages, tensors, pickle",
           .checksums = "a sum of every header's bytes",
           .sniff = sniff_torch_tar,
           .read = read_torch_tar},
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
    Format{.name = "keras",
           .title = "Keras 3 model",
           .files = "one zip file: config.json, metadata.json and the weights",
           .checksums = "CRC-32 of every member",
           .sniff = sniff_keras,
           .read = read_keras},
    Format{.name = "gguf",
           .title = "GGUF (ggml, llama.cpp)",
           .files = "one file: metadata, descriptions of tensors, aligned data",
           .checksums = "none",
           .sniff = sniff_gguf,
           .read = read_gguf},
    Format{.name = "npy",
           .title = "NumPy array",
           .files = "one file: a header of text and the array",
           .checksums = "none",
           .sniff = sniff_npy,
           .read = read_npy},
    Format{.name = "npz",
           .title = "NumPy archive",
           .files = "one zip file of .npy arrays",
           .checksums = "CRC-32 of every array",
           .sniff = sniff_npz,
           .read = read_npz},
    Format{.name = "rank-files",
           .title = "directory of plain files, one a rank or one a component",
           .files = "a directory: rank0.pt, rank1.pt, ...; ckpt.pt, rng_state_0.pth; model.pt",
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

}  // namespace

FormatTable formats() {
  return FormatTable(kRows);
}

}  // namespace ckptverify
