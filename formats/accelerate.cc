// A directory of Accelerate's save_state. All files but the model's are torch.save files, whatever
// their names end in. The second of a kind is called <kind>_1, and so on. Nothing marks the end of
// a save; the loader goes on in silence when it finds no random states.
//
//   model.safetensors | pytorch_model.bin      model_1.safetensors, ...
//   optimizer.bin, scheduler.bin, sampler.bin, dl_state_dict.bin
//   scaler.pt
//   random_states_<rank>.pkl                   RNG of each rank, and its step
//   custom_checkpoint_<i>.pkl                  what the user registered
//   pytorch_model_fsdp_0/, optimizer_0/, latest and pytorch_model/     FSDP, DeepSpeed
#include "formats/accelerate.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/container/backend_files.h"
#include "formats/container/directory_names.h"
#include "formats/container/generation.h"
#include "formats/container/model_files.h"
#include "formats/container/rank_set.h"

namespace ckptverify {
namespace {

constexpr std::string_view kRngPrefix = "random_states_";
constexpr std::string_view kRngSuffix = ".pkl";

/// Files of one kind: <stem><suffix> is the first, <stem>_1<suffix> the second.
struct Kind {
  std::string_view stem;
  std::string_view suffix;
  std::string_view root;       // of the first; the others get their number
  std::size_t component_root;  // of the first
  Component component;
};

constexpr std::size_t kCursorRoot = std::string_view("data_cursor.").size();
constexpr std::array kKinds = {
    Kind{"model", ".safetensors", "model", std::string_view("model.").size(), Component::kModel},
    Kind{"pytorch_model", ".bin", "model", std::string_view("model.").size(), Component::kModel},
    Kind{"optimizer", ".bin", "optimizer", std::string_view("optimizer.").size(),
         Component::kOptimizer},
    Kind{"scheduler", ".bin", "scheduler", std::string_view("scheduler.").size(),
         Component::kScheduler},
    Kind{"sampler", ".bin", "data_cursor.sampler", kCursorRoot, Component::kDataCursor},
    Kind{"dl_state_dict", ".bin", "data_cursor.dl_state_dict", kCursorRoot, Component::kDataCursor},
};

class Reader {
 public:
  Reader(const Source& directory, const FormatTable& table)
      : assembly_("accelerate", directory, table), directory_(directory) {}
  Checkpoint read() &&;

 private:
  bool add_kind(const Kind& kind);
  void add_rng();
  void add_custom();
  void check_rank_steps();

  Assembly assembly_;
  const Source& directory_;
  BackendFiles backend_;
  std::vector<RankFile> ranks_;
};

/// All files of the kind; whether there is any.
bool Reader::add_kind(const Kind& kind) {
  std::vector<std::uint64_t> numbers;
  const std::string first = std::string(kind.stem) + std::string(kind.suffix);
  if (directory_.has_member(first)) {
    numbers.push_back(0);
    if (!assembly_.is_used(first))
      assembly_.add(first, {.root = std::string(kind.root) + ".",
                            .component = kind.component,
                            .component_root = kind.component_root});
  }
  const std::string prefix = std::string(kind.stem) + "_";
  for (const std::string& name : top_files(directory_)) {
    const auto number = number_between(name, prefix, kind.suffix);
    if (!number || *number == 0) continue;
    numbers.push_back(*number);
    // Numbered from the second on, so that no path of the first can be the same.
    const bool cursor = kind.component == Component::kDataCursor;
    assembly_.add(name, {.root = std::string(kind.root) + "_" + std::to_string(*number) + ".",
                         .component = kind.component,
                         .component_root = cursor ? kind.component_root : 0});
  }
  std::sort(numbers.begin(), numbers.end());
  const bool backend = kind.component == Component::kModel ? backend_.model || backend_.deepspeed
                                                           : backend_.optimizer;
  // Samplers are written only for some of the data loaders.
  if (numbers.empty() || backend || kind.component == Component::kDataCursor)
    return !numbers.empty();
  if (const Holes holes = holes_in(numbers, 0, numbers.back() + 1); holes.count > 0)
    assembly_.fail(CauseKind::kShardMissing,
                   std::string(kind.stem) + "*" + std::string(kind.suffix),
                   "files of a numbered set are missing; found " + std::to_string(numbers.size()) +
                       ", expected " + std::to_string(numbers.back() + 1),
                   {{"first missing", std::to_string(holes.first)}});
  return true;
}

/// Of each rank; its own step counter is a step, not a random state.
void Reader::add_rng() {
  ranks_ = rank_files_in(directory_, kRngPrefix, kRngSuffix);
  for (const RankFile& file : ranks_) {
    const std::string rank = std::to_string(file.rank) + ".";
    assembly_.add(file.name,
                  {.root = "rng." + rank, .component = Component::kRng, .rank = file.rank});
    for (Entry& entry : assembly_.checkpoint().entries) {
      if (entry.path != "rng." + rank + "step") continue;
      entry.path = "step." + rank + "step";
      entry.component = Component::kStep;
      entry.root_size = std::string("step." + rank).size();
    }
  }
  if (ranks_.empty())
    assembly_.fail(CauseKind::kRngLost, "random_states_0.pkl",
                   "is missing, and a resume then goes on with other random numbers without a "
                   "word; found no file of any rank");
  else
    check_ranks(assembly_, ranks_, std::max(rank_count(ranks_), backend_.rank_count),
                "random_states_*.pkl");
}

/// What the user registered may be anything: its own keys say what. A bare state dict is not the
/// model, which has a file of its own.
void Reader::add_custom() {
  const auto files = rank_files_in(directory_, "custom_checkpoint_", ".pkl");
  for (const RankFile& file : files) {
    auto part = assembly_.read(file.name);
    if (!part) continue;
    for (Entry& entry : part->entries)
      if (entry.component == Component::kModel) entry.component = Component::kOther;
    assembly_.absorb(
        *std::move(part),
        {.root = "custom_checkpoint_" + std::to_string(file.rank) + ".", .component_root = 0});
  }
  check_ranks(assembly_, files, rank_count(files), "custom_checkpoint_*.pkl");
}

/// All ranks count the same calls, so that two counts are of two saves.
void Reader::check_rank_steps() {
  std::vector<Evidence> evidence;
  std::vector<std::int64_t> steps;
  for (const RankFile& file : ranks_) {
    const auto step =
        whole_number(assembly_.checkpoint(), "step." + std::to_string(file.rank) + ".step");
    if (!step) continue;
    steps.push_back(*step);
    evidence.push_back({file.name, std::to_string(*step)});
  }
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  if (steps.empty() || *least == *most) return;
  mixed_steps(assembly_.checkpoint(), Status::kFail, "random_states_*.pkl",
              "ranks are of different saves; found steps " + std::to_string(*least) + " and " +
                  std::to_string(*most) + ", expected one",
              std::move(evidence));
}

Checkpoint Reader::read() && {
  const ModelFiles files = add_model_files(assembly_);
  backend_ = add_backend_files(assembly_);
  bool model = files.weights || files.adapters || backend_.model || backend_.deepspeed;
  bool optimizer = backend_.optimizer || backend_.deepspeed;
  bool scheduler = false;
  for (const Kind& kind : kKinds) {
    const bool there = add_kind(kind);
    if (kind.component == Component::kModel) model = model || there;
    if (kind.component == Component::kOptimizer) optimizer = optimizer || there;
    if (kind.component == Component::kScheduler) scheduler = scheduler || there;
  }
  assembly_.add("scaler.pt", {.root = "scaler.", .component = Component::kScaler});
  add_rng();
  add_custom();
  add_model_settings(assembly_);
  if (!model)
    assembly_.fail(CauseKind::kShardMissing, "model.safetensors",
                   "no weights; found none of the names that Accelerate writes");
  if (!optimizer && scheduler)
    assembly_.fail(CauseKind::kOptLost, "optimizer.bin",
                   "is missing beside scheduler.bin, which is saved after it");
  check_rank_steps();
  return std::move(assembly_).finish();
}

}  // namespace

bool sniff_accelerate(const Source& source) {
  if (!source.is_directory()) return false;
  if (!rank_files_in(source, kRngPrefix, kRngSuffix).empty()) return true;
  const ModelFiles model = find_model_files(source);
  const BackendFiles backend = find_backend_files(source);
  const bool state = source.has_member("optimizer.bin") || source.has_member("scheduler.bin") ||
                     source.has_member("custom_checkpoint_0.pkl");
  return backend.model || backend.optimizer || (state && model.weights);
}

Result<Checkpoint> read_accelerate(const Source& source, const FormatTable& table) {
  return Reader(source, table).read();
}

}  // namespace ckptverify
