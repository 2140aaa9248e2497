// What a model_states file of DeepSpeed says about the flat partitions of the optimizer: which
// parameters they hold, in which order and of which shapes. The order is the pickle's own, which
// paths that are sorted no longer know.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/result.h"
#include "ckptverify/source.h"

namespace ckptverify {

struct DeepspeedParameter {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t element_count = 0;
};

struct DeepspeedLayout {
  std::vector<std::vector<DeepspeedParameter>> groups;  // param_shapes
  std::vector<DeepspeedParameter> frozen;               // frozen_param_shapes
  /// A parameter that is not stored, and the one that it shares its storage with.
  std::vector<std::pair<std::string, std::string>> shared;
};

/// Without param_shapes (no ZeRO) all of it is empty. Errors: an archive or a pickle that cannot be
/// read, shapes that are none; unsupported for files that torch.save did not write.
Result<DeepspeedLayout> read_deepspeed_layout(const Source& file);

}  // namespace ckptverify
