// What the distributed backends of Accelerate leave in a checkpoint, for it and for the Hugging
// Face Trainer alike.
//
//   FSDP: pytorch_model_fsdp_0/, optimizer_0/               DCP directories
//         pytorch_model_fsdp.bin, optimizer.bin             gathered on one rank
//         pytorch_model_fsdp[_0]_rank3.bin, optimizer_0_rank3.bin    one a rank
//   DeepSpeed: latest, and the directory that it names
#pragma once

#include <cstdint>

#include "formats/container/assembly.h"

namespace ckptverify {

struct BackendFiles {
  bool model = false;
  bool optimizer = false;
  bool deepspeed = false;        // which holds the scheduler as well
  std::uint64_t rank_count = 0;  // that the names speak of; 0 where they say nothing
};

/// By names alone.
BackendFiles find_backend_files(const Source& directory);

/// Reads them: "model." and "optimizer.", a second model under "model_1.", and so on. What
/// DeepSpeed has beside its optimizer stands under "deepspeed.", its model only where no other is
/// there yet.
BackendFiles add_backend_files(Assembly& assembly);

}  // namespace ckptverify
