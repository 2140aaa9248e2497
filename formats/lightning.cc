// A sharded checkpoint of Lightning or Fabric (FSDP, model parallelism).
//
//   epoch=1-step=10.ckpt/
//     .metadata, __<rank>_<i>.distcp    DCP: model and optimizers
//     meta.pt                           torch.save of everything else, by rank 0, written last
#include "formats/lightning.h"

#include <string>
#include <string_view>
#include <utility>

#include "formats/container/assembly.h"
#include "formats/container/dcp_reader.h"
#include "formats/container/generation.h"
#include "formats/container/sharded_layout.h"

namespace ckptverify {
namespace {

constexpr std::string_view kMeta = "meta.pt";

/// The trainer's step counts the updates of all optimizers, so that none can have seen more.
void check_steps(Checkpoint& checkpoint) {
  const auto trainer = whole_number(checkpoint, "global_step");
  const auto optimizer = optimizer_steps(checkpoint);
  if (!trainer || !optimizer || *optimizer <= *trainer) return;
  mixed_steps(
      checkpoint, Status::kFail, std::string(kMeta),
      "is of an earlier save than the shards; found global_step " + std::to_string(*trainer) +
          ", expected at least the " + std::to_string(*optimizer) + " updates of the optimizer",
      {{"global_step", std::to_string(*trainer)}, {"optimizer steps", std::to_string(*optimizer)}});
}

}  // namespace

bool sniff_lightning(const Source& source) {
  if (!source.is_directory() || !has_dcp_files(source)) return false;
  return source.has_member(kMeta) || directory_name(source).ends_with(".ckpt");
}

Result<Checkpoint> read_lightning(const Source& source, const FormatTable& table) {
  Assembly assembly("lightning", source, table);
  if (const auto shards = read_dcp_into(assembly); !shards) {
    assembly.note(shards.error());
    for (const std::string& member : source.members())
      if (is_dcp_file(member)) assembly.add_accessory(member);
  }
  if (source.has_member(kMeta))
    assembly.add(std::string(kMeta), {});
  else
    assembly.fail(CauseKind::kUncommitted, std::string(kMeta),
                  "is missing, and Lightning writes it after the shards; found no file, expected "
                  "one");
  check_steps(assembly.checkpoint());
  return std::move(assembly).finish();
}

}  // namespace ckptverify
