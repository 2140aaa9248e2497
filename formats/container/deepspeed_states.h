// One file of a DeepSpeed checkpoint as what it is for: its entries under the paths of this layout,
// the flat partitions taken out, to be put together with the other ranks'.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "formats/container/deepspeed_names.h"
#include "formats/container/placement.h"

namespace ckptverify {

/// The elements of a rank's optimizer: "fp32" and the optimizer's own ("exp_avg"), a group each.
struct DeepspeedFlats {
  bool parameters_too = false;  // stage 3
  std::map<std::string, std::map<std::uint32_t, Tensor>> vectors;
  std::map<std::string, std::map<std::uint32_t, Node>> scalars;  // "step"
};

/// What a model_states file says of the whole checkpoint.
struct DeepspeedWorld {
  std::optional<std::int64_t> data_ranks;   // dp_world_size
  std::optional<std::int64_t> model_ranks;  // mp_world_size
  std::optional<std::int64_t> steps;        // global_steps
};

/// Where the file's entries go. Of several model ranks each has its own model and optimizer.
struct DeepspeedPlace {
  DeepspeedFile file;
  bool several_models = false;
  SaidOnce* said = nullptr;  // by the files of this model rank before this one
};

DeepspeedWorld deepspeed_world(const Checkpoint& part);
/// partition_count, the greatest of a list.
std::optional<std::int64_t> deepspeed_partition_count(const Checkpoint& part);

/// "model.", "optimizer.1."; and of a rank by itself.
std::string deepspeed_root(Component component, const DeepspeedPlace& place);
std::optional<std::uint32_t> deepspeed_rank(Component component, const DeepspeedPlace& place);

/// Entries of a model_states, layer or expert file; frozen_param_fragments are taken out.
std::map<std::string, Tensor> place_model_states(Checkpoint& part, const DeepspeedPlace& place);

/// Entries of an optim_states file; the flat partitions and the scalars beside them are taken out.
DeepspeedFlats place_optimizer_states(Checkpoint& part, const DeepspeedPlace& place);

}  // namespace ckptverify
