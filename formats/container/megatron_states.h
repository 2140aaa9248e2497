// Where the state of a Megatron checkpoint goes: its keys are the same in the legacy files of each
// rank, in common.pt, and in the objects of a distributed checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/container/placement.h"

namespace ckptverify {

/// A rank of model parallelism by its directory: mp_rank_TT[_PPP][_EEE].
struct MegatronRank {
  std::string name;
  std::vector<std::uint32_t> numbers;  // tensor, pipeline, expert: as many as the name has
};

std::optional<MegatronRank> megatron_rank(std::string_view directory_name);

/// `rank`: the place of a rank among several, whose model, optimizer and generators are its own.
/// `label` is a part of its paths then ("mp_rank_01_000").
struct MegatronPlace {
  std::optional<std::uint32_t> rank = {};
  std::string label = {};
};

/// For a key of the state ("args.lr", "model.embedding.weight").
Placement megatron_placement(std::string_view path, const MegatronPlace& place);

/// For a key of a distributed checkpoint ("decoder.layers.mlp.weight",
/// "optimizer.state.exp_avg.decoder...", "rng_state/shard_0.0_1.1"), and for what an object under
/// it holds.
Placement megatron_shard_placement(std::string_view path);

/// 100 for "iter_0000100".
std::optional<std::uint64_t> megatron_iteration(std::string_view directory_name);

}  // namespace ckptverify
