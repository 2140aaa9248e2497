// From the flat partitions that ZeRO leaves on every rank to tensors by parameter: which elements
// of which rank's vector make up which parameter. No bytes are touched.
//
//   stages 1 and 2: a group's parameters end to end, padded, cut into one range a rank
//       rank 0: | a a a a b b b | rank 1: | b b c c c . . |       '.': padding
//   stage 3: every parameter cut by itself into one range a rank, the last one padded
//       rank 0: | a a | b b b | c c |     rank 1: | a a | b b . | c . |
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/result.h"
#include "ckptverify/tensor.h"
#include "formats/container/deepspeed_layout.h"

namespace ckptverify {

enum class ZeroStage { kOptimizer, kParameters };  // 1 and 2; 3

/// One vector a group, of every rank: `flats[rank][group]`.
using FlatGroups = std::vector<std::vector<Tensor>>;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// A tensor of one contiguous dimension, whose elements are a range of its run.
bool is_flat(const Tensor& tensor);

/// The tensors of all parameters, in the order of the layout. Malformed (shard-missing) where the
/// ranks' vectors are of other sizes than the parameters need, beyond the padding that the writer
/// makes; what is malformed names both.
Result<NamedTensors> join_partitions(ZeroStage stage, const FlatGroups& flats,
                                     const DeepspeedLayout& layout);

/// A parameter from one range of each rank, cut to its size: what stage 3 does with frozen ones.
Result<Tensor> join_fragments(const DeepspeedParameter& parameter,
                              const std::vector<Tensor>& fragments);

}  // namespace ckptverify
