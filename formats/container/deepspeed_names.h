// What DeepSpeed calls its files, and what the names say: which rank of data parallelism, which of
// model parallelism, which layer of a pipeline, which expert.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/source.h"

namespace ckptverify {

enum class DeepspeedKind {
  kModel,            // [zero_pp_rank_D_]mp_rank_MM_model_states.pt
  kOptimizer,        // [bf16_|fp16_]zero_pp_rank_D_mp_rank_MM_optim_states.pt
  kLayer,            // layer_LL[-model_MM]-model_states.pt, of a pipeline
  kExpert,           // [layer_L_]expert_E_mp_rank_MM_model_states.pt
  kExpertOptimizer,  // expp_rank_E_mp_rank_MM_optim_states.pt
};

struct DeepspeedFile {
  DeepspeedKind kind = DeepspeedKind::kModel;
  std::string name = {};
  std::uint32_t data_rank = 0;  // D; E of an expert's optimizer
  bool per_data_rank = false;   // the name has a D
  std::uint32_t model_rank = 0;
  std::string part = {};  // "layer_03", "layer_3.expert_0": what of the model it holds
};

std::optional<DeepspeedFile> deepspeed_file(std::string_view name);

/// The files directly in a directory that DeepSpeed names so, sorted by kind and then by rank.
std::vector<DeepspeedFile> deepspeed_files(const Source& directory);

/// What the file of a kind and of these ranks is called beside the others.
std::string deepspeed_sibling(const std::vector<DeepspeedFile>& files, DeepspeedKind kind,
                              std::uint64_t data_rank, std::uint64_t model_rank);

/// The directories directly below that hold such files, in natural order; universal checkpoints
/// are none of them.
std::vector<std::string> deepspeed_tags(const Source& directory);

}  // namespace ckptverify
