// DeepSpeed's universal checkpoint.
//
//   latest_universal                      the directory's name
//   global_step100_universal/
//     zero/<parameter>/fp32.pt            {param: tensor, cat_dim: ...}, or a tensor alone
//     zero/<parameter>/exp_avg.pt, exp_avg_sq.pt, step.pt
//     zero/optimizer_state.pt             groups, and what else the optimizer has
//     mp_rank_00_model_states.pt          as in the checkpoint it was made from
//     tmp/                                left by a conversion that did not end
//
// Source: deepspeed/checkpoint/ds_to_universal.py.
#include "formats/deepspeed_universal.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/container/assembly.h"
#include "formats/container/deepspeed_latest.h"
#include "formats/container/deepspeed_names.h"
#include "formats/container/deepspeed_states.h"
#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

constexpr std::string_view kLatest = "latest_universal";
constexpr std::string_view kZero = "zero/";
constexpr std::string_view kSuffix = ".pt";
constexpr std::string_view kWeights = "fp32";
constexpr std::string_view kOptimizerRoot = "optimizer.";

struct StateFile {
  std::string parameter;
  std::string key;  // "fp32", "exp_avg"
  std::string name;
};

/// "zero/<parameter>/<key>.pt".
std::vector<StateFile> state_files(const Source& directory) {
  std::vector<StateFile> files;
  for (const std::string& name : directory.members()) {
    const std::size_t slash = name.rfind('/');
    if (!name.starts_with(kZero) || !name.ends_with(kSuffix) || slash < kZero.size()) continue;
    files.push_back({.parameter = name.substr(kZero.size(), slash - kZero.size()),
                     .key = name.substr(slash + 1, name.size() - slash - 1 - kSuffix.size()),
                     .name = name});
  }
  return files;
}

/// The tensor under "optimizer.fp32.<parameter>", what stands beside it under "deepspeed.".
void place(Checkpoint& part, const StateFile& file) {
  for (Entry& entry : part.entries) {
    const std::string own = file.key + "." + file.parameter;
    if (entry.path == "param" || entry.path.empty() || file.key == "step") {
      const bool inside = file.key == "step" && !entry.path.empty();
      entry.path = std::string(kOptimizerRoot) + own + (inside ? "." + entry.path : "");
      entry.component = Component::kOptimizer;
      entry.root_size = kOptimizerRoot.size();
    } else {
      entry.path = "deepspeed." + own + "." + entry.path;
      entry.component = Component::kOther;
      entry.root_size = 0;
    }
  }
}

/// Every parameter has its weights, and all that the optimizer keeps for any or, as a frozen or a
/// shared one, nothing of it.
void check_keys(Assembly& assembly, const std::vector<StateFile>& files) {
  std::map<std::string, std::set<std::string>> by_parameter;
  std::set<std::string> keys;
  for (const StateFile& file : files) {
    by_parameter[file.parameter].insert(file.key);
    keys.insert(file.key);
  }
  for (const auto& [parameter, own] : by_parameter)
    for (const std::string& key : keys) {
      const bool untrained = own.size() == 1 && key != kWeights;
      if (own.contains(key) || (untrained && own.contains(std::string(kWeights)))) continue;
      assembly.fail(CauseKind::kShardMissing, "zero/" + parameter,
                    "has no " + key + ".pt; expected one, as other parameters have it");
    }
}

void add_model(Assembly& assembly, const DeepspeedFile& file, bool several_models, SaidOnce& said) {
  auto part = assembly.read(file.name);
  if (!part) return;
  place_model_states(*part, {.file = file, .several_models = several_models, .said = &said});
  assembly.absorb(*std::move(part), {});
}

bool has_weights(const Source& directory) {
  const auto files = state_files(directory);
  return std::any_of(files.begin(), files.end(),
                     [](const StateFile& file) { return file.key == kWeights; });
}

/// The directory that `latest_universal` names. Beside checkpoints of an engine, which `latest`
/// names, it is theirs to be read.
Result<std::string> latest_universal(const Source& directory) {
  constexpr std::size_t kNameBytesMax = 4096;  // PATH_MAX
  if (directory.has_member(kDeepspeedLatest))
    return Error{.message = "an engine's own checkpoints are there"};
  CKPTVERIFY_TRY(const Source latest, directory.member(kLatest));
  std::string name(as_text(latest.bytes()).substr(0, kNameBytesMax));
  name.erase(name.find_last_not_of(" \t\r\n") + 1);
  return name;
}

}  // namespace

bool sniff_deepspeed_universal(const Source& source) {
  if (!source.is_directory()) return false;
  return has_weights(source) || static_cast<bool>(latest_universal(source));
}

Result<Checkpoint> read_deepspeed_universal(const Source& source, const FormatTable& table) {
  if (!has_weights(source)) {
    CKPTVERIFY_TRY(const std::string name, latest_universal(source));
    const auto below = source.subdirectory(name);
    if (below && has_weights(*below)) return read_deepspeed_universal(*below, table);
    return Error{.message = "names no universal checkpoint that is there; found '" + name + "'",
                 .subject = std::string(kLatest),
                 .cause = Cause{CauseKind::kUncommitted, {}}};
  }
  Assembly assembly("deepspeed-universal", source, table);
  const auto files = state_files(source);
  for (const StateFile& file : files) {
    auto part = assembly.read(file.name);
    if (!part) continue;
    place(*part, file);
    assembly.absorb(*std::move(part), {});
  }
  check_keys(assembly, files);
  constexpr std::string_view kGroups = "zero/optimizer_state.pt";
  if (source.has_member(kGroups))
    assembly.add(std::string(kGroups),
                 {.root = std::string(kOptimizerRoot), .component = Component::kOptimizer});
  const auto models = deepspeed_files(source);
  std::set<std::uint32_t> ranks;
  for (const DeepspeedFile& file : models) ranks.insert(file.model_rank);
  std::map<std::uint32_t, SaidOnce> said;
  for (const DeepspeedFile& file : models)
    add_model(assembly, file, ranks.size() > 1, said[file.model_rank]);
  if (has_directory(source, "tmp")) {
    assembly.leave_out("tmp");
    assembly.fail(CauseKind::kUncommitted, "tmp",
                  "the conversion did not come to its end; found slices that it removes last");
  }
  return std::move(assembly).finish();
}

}  // namespace ckptverify
