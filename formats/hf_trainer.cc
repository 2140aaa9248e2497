// A checkpoint of the Hugging Face Trainer.
//
//   checkpoint-500/
//     model.safetensors, or its shards, pytorch_model*.bin, adapter_model.*    weights
//     optimizer.pt | optimizer.bin | optimizer_0/ | rank3-of-8-optimizer.pt    optimizer
//     scheduler.pt, scaler.pt
//     rng_state.pth                 one process; rng_state_<rank>.pth several
//     trainer_state.json            step and history, written last of all
//     training_args.bin, config.json, tokenizer.json, ...
//     pytorch_model_fsdp_0/, latest and global_step500/    FSDP, DeepSpeed
#include "formats/hf_trainer.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "formats/container/backend_files.h"
#include "formats/container/directory_names.h"
#include "formats/container/model_files.h"
#include "formats/container/rank_set.h"
#include "formats/container/sharded_layout.h"
#include "formats/hf_trainer_steps.h"

namespace ckptverify {
namespace {

constexpr std::string_view kState = "trainer_state.json";
constexpr std::string_view kRng = "rng_state.pth";
constexpr std::array<std::string_view, 2> kOptimizers = {"optimizer.pt", "optimizer.bin"};
// Members of trainer_state.json that are a record of the run so far, not a position in it.
constexpr std::array<std::string_view, 9> kHistory = {
    "log_history", "stateful_callbacks", "best_",     "trial_",  "total_flos",
    "is_local_",   "is_world_",          "is_hyper_", "logging_"};

bool is_history(std::string_view member) {
  return std::any_of(kHistory.begin(), kHistory.end(),
                     [member](std::string_view start) { return member.starts_with(start); });
}

class Reader {
 public:
  Reader(const Source& directory, const FormatTable& table)
      : assembly_("hf-trainer", directory, table), directory_(directory) {}
  Checkpoint read() &&;

 private:
  void add_state();
  void add_model();
  void add_optimizer();
  void add_xla_optimizers();
  void add_rng();
  void check_complete();

  Assembly assembly_;
  const Source& directory_;
  BackendFiles backend_;
  bool model_ = false;
  bool optimizer_ = false;
  bool scheduler_ = false;
  bool rng_ = false;
};

/// The position under "step.", the record under "trainer_state.".
void Reader::add_state() {
  const std::string name(kState);
  if (!assembly_.add_json(name, {.root = "step.", .component = Component::kStep})) {
    if (!directory_.has_member(name))
      assembly_.fail(CauseKind::kUncommitted, name,
                     "is missing, and the Trainer writes it last; found no file, expected one");
    return;
  }
  for (Entry& entry : assembly_.checkpoint().entries) {
    if (entry.component != Component::kStep || !is_history(relative_path(entry))) continue;
    entry.path = "trainer_state." + std::string(relative_path(entry));
    entry.component = Component::kOther;
    entry.root_size = 0;
  }
}

void Reader::add_model() {
  const ModelFiles files = add_model_files(assembly_);
  backend_ = add_backend_files(assembly_);
  model_ = files.weights || files.adapters || backend_.model || backend_.deepspeed;
}

/// One file a rank of a fully sharded model on XLA: rank3-of-8-optimizer.pt.
void Reader::add_xla_optimizers() {
  std::vector<RankFile> files;
  std::uint64_t world = 0;
  for (const std::string& name : top_files(directory_)) {
    const auto number = shard_number(name, "rank", "-optimizer.pt");
    if (!number || number->index >= UINT32_MAX) continue;
    files.push_back({static_cast<std::uint32_t>(number->index), name});
    world = std::max(world, number->count);
    assembly_.add(name, {.root = "optimizer." + std::to_string(number->index) + ".",
                         .component = Component::kOptimizer,
                         .rank = files.back().rank});
  }
  std::sort(files.begin(), files.end(),
            [](const RankFile& a, const RankFile& b) { return a.rank < b.rank; });
  check_ranks(assembly_, files, world, "rank*-of-" + std::to_string(world) + "-optimizer.pt");
  optimizer_ = optimizer_ || !files.empty();
}

void Reader::add_optimizer() {
  optimizer_ = backend_.optimizer || backend_.deepspeed;
  for (const std::string_view name : kOptimizers) {
    if (!directory_.has_member(name)) continue;
    optimizer_ = true;
    assembly_.add(std::string(name), {.root = "optimizer.", .component = Component::kOptimizer});
  }
  add_xla_optimizers();
  // Sharded by SageMaker's model parallelism: a format of its own, whose parts are torch files.
  for (const RankFile& file : rank_files_in(directory_, "optimizer.pt_", "")) {
    optimizer_ = true;
    assembly_.add(file.name, {.root = "optimizer." + std::to_string(file.rank) + ".",
                              .component = Component::kOptimizer,
                              .rank = file.rank});
  }
  scheduler_ = directory_.has_member("scheduler.pt");
  assembly_.add("scheduler.pt", {.root = "scheduler.", .component = Component::kScheduler});
  assembly_.add("scaler.pt", {.root = "scaler.", .component = Component::kScaler});
}

/// A file of a number is written by several processes only, so that one alone is never whole.
void Reader::add_rng() {
  const auto files = rank_files_in(directory_, "rng_state_", ".pth");
  const bool single = directory_.has_member(kRng);
  rng_ = single || !files.empty();
  if (single) assembly_.add(std::string(kRng), {.root = "rng.", .component = Component::kRng});
  if (single && !files.empty())
    assembly_.warn(std::string(kRng), "is of one process, and rng_state_" +
                                          std::to_string(files.front().rank) +
                                          ".pth of several: one of them is of an earlier save");
  std::uint64_t ranks = single ? 0 : std::max<std::uint64_t>(rank_count(files), 2);
  if (backend_.rank_count > 1) ranks = std::max(ranks, backend_.rank_count);
  if (!files.empty()) check_ranks(assembly_, files, ranks, "rng_state_*.pth");
  for (const RankFile& file : files) {
    if (backend_.rank_count > 1 && file.rank >= backend_.rank_count)
      assembly_.warn(file.name,
                     "is of a rank that no other file knows, left from a larger run; "
                     "expected at most rank " +
                         std::to_string(backend_.rank_count - 1));
    assembly_.add(file.name, {.root = "rng." + std::to_string(file.rank) + ".",
                              .component = Component::kRng,
                              .rank = file.rank});
  }
}

/// What the Trainer needs and does not find; all of it absent is `save_only_model`.
void Reader::check_complete() {
  if (!model_)
    assembly_.fail(CauseKind::kShardMissing, "model.safetensors",
                   "no weights; found none of the names that the Trainer writes");
  if (!optimizer_ && !scheduler_ && !rng_) {
    assembly_.warn("optimizer",
                   "saved without optimizer, scheduler and random number states "
                   "(save_only_model): a resume starts them anew");
    return;
  }
  if (!optimizer_)
    assembly_.fail(CauseKind::kOptLost, "optimizer.pt",
                   "is missing beside what is saved with it, and a resume then starts the "
                   "optimizer anew without a word");
  if (!scheduler_ && !backend_.deepspeed)
    assembly_.fail(CauseKind::kSchedLost, "scheduler.pt",
                   "is missing beside what is saved with it, and a resume then starts optimizer "
                   "and scheduler anew without a word");
  if (!rng_)
    assembly_.fail(CauseKind::kRngLost, std::string(kRng),
                   "is missing beside what is saved with it; found no file of any rank");
}

Checkpoint Reader::read() && {
  add_state();
  add_model();
  add_optimizer();
  add_rng();
  add_model_settings(assembly_);
  assembly_.add("training_args.bin",
                {.root = "training_args.", .component = Component::kConfig, .component_root = 0});
  check_complete();
  check_hf_trainer_steps(assembly_);
  // The output directory of a run also holds its checkpoints, which are checkpoints of their own.
  for (const std::string& name : top_directories(directory_))
    if (number_between(name, "checkpoint-", "")) assembly_.leave_out(name);
  return std::move(assembly_).finish();
}

}  // namespace

bool sniff_hf_trainer(const Source& source) {
  if (!source.is_directory()) return false;
  if (source.has_member(kState)) return true;
  // Interrupted before the last file: its own names beside each other are nobody else's.
  if (source.has_member("random_states_0.pkl")) return false;
  const bool rng = source.has_member(kRng) || !rank_files_in(source, "rng_state_", ".pth").empty();
  const int own = int{source.has_member("scheduler.pt")} + int{source.has_member("optimizer.pt")} +
                  int{source.has_member("training_args.bin")} + int{rng};
  const BackendFiles backend = find_backend_files(source);
  const ModelFiles model = find_model_files(source);
  const bool weights = model.weights || model.adapters || backend.model;
  const bool named = number_between(directory_name(source), "checkpoint-", "").has_value();
  return (named && (own > 0 || backend.model)) || (weights && own >= 2);
}

Result<Checkpoint> read_hf_trainer(const Source& source, const FormatTable& table) {
  return Reader(source, table).read();
}

}  // namespace ckptverify
