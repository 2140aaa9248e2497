// A sharded checkpoint of Lightning or Fabric (FSDP, model parallelism).
//
//   epoch=1-step=10.ckpt/
//     .metadata, __<rank>_<i>.distcp    DCP: model and optimizers
//     meta.pt                           torch.save of everything else, by rank 0, written last
#include "formats/lightning.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "formats/container/assembly.h"
#include "formats/container/generation.h"
#include "formats/container/sharded_layout.h"

namespace ckptverify {
namespace {

constexpr std::string_view kMeta = "meta.pt";
constexpr std::string_view kDcpMetadata = ".metadata";

/// The rows after this format's own, which would only recognise the same directory again.
FormatTable other_formats(const FormatTable& table) {
  const auto rows = table.rows();
  const auto own = std::find_if(rows.begin(), rows.end(),
                                [](const Format& row) { return row.sniff == sniff_lightning; });
  if (own == rows.end()) return table;
  return FormatTable(rows.subspan(static_cast<std::size_t>(own - rows.begin()) + 1), table.depth());
}

bool has_distcp(const Source& source) {
  return source.has_member(kDcpMetadata) ||
         std::any_of(source.members().begin(), source.members().end(),
                     [](const std::string& name) { return name.ends_with(".distcp"); });
}

void add_shards(Assembly& assembly) {
  const Source& source = assembly.directory();
  auto part = other_formats(assembly.table()).read(source);
  for (const std::string& member : source.members()) assembly.use(member);
  if (!part) return assembly.note(part.error());
  // To the reader of the shards alone, meta.pt is a stranger.
  std::erase_if(part->findings, [](const Finding& finding) {
    return finding.status == Status::kWarn && finding.subject == kMeta;
  });
  assembly.absorb(*std::move(part), {});
}

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
  if (!source.is_directory() || !has_distcp(source)) return false;
  return source.has_member(kMeta) || directory_name(source).ends_with(".ckpt");
}

Result<Checkpoint> read_lightning(const Source& source, const FormatTable& table) {
  Assembly assembly("lightning", source, table);
  add_shards(assembly);
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
