// The components' names, and the one table from top-level keys of all layouts to components.
#include "ckptverify/component.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace ckptverify {

namespace {

constexpr std::array kComponents = {
    Component::kModel, Component::kOptimizer, Component::kScheduler,  Component::kScaler,
    Component::kStep,  Component::kRng,       Component::kDataCursor, Component::kConfig,
    Component::kEma,   Component::kOther,
};

constexpr std::array<std::string_view, kComponents.size()> kNames = {
    "model", "optimizer",   "scheduler", "scaler", "step",
    "rng",   "data_cursor", "config",    "ema",    "other",
};

struct KeyRow {
  Component component;
  std::string_view key;
};

// Keys as PyTorch scripts, Lightning, DeepSpeed, Megatron, torchtitan and Accelerate write them. A
// trailing number ("optimizer_1") is cut off before the table is asked.
constexpr std::array kKeys = {
    KeyRow{Component::kModel, "model"},
    KeyRow{Component::kModel, "state_dict"},
    KeyRow{Component::kModel, "model_state_dict"},
    KeyRow{Component::kModel, "model_state"},
    KeyRow{Component::kModel, "model_states"},
    KeyRow{Component::kModel, "model_dict"},
    KeyRow{Component::kModel, "model_weights"},
    KeyRow{Component::kModel, "net"},
    KeyRow{Component::kModel, "network"},
    KeyRow{Component::kModel, "net_state_dict"},
    KeyRow{Component::kModel, "module"},
    KeyRow{Component::kModel, "weights"},
    KeyRow{Component::kModel, "params"},
    KeyRow{Component::kOptimizer, "optimizer"},
    KeyRow{Component::kOptimizer, "optimizers"},
    KeyRow{Component::kOptimizer, "optim"},
    KeyRow{Component::kOptimizer, "opt"},
    KeyRow{Component::kOptimizer, "opt_state"},
    KeyRow{Component::kOptimizer, "optim_state"},
    KeyRow{Component::kOptimizer, "optim_states"},
    KeyRow{Component::kOptimizer, "optim_state_dict"},
    KeyRow{Component::kOptimizer, "opt_state_dict"},
    KeyRow{Component::kOptimizer, "optimizer_state"},
    KeyRow{Component::kOptimizer, "optimizer_states"},
    KeyRow{Component::kOptimizer, "optimizer_state_dict"},
    KeyRow{Component::kOptimizer, "optimizer_state_dicts"},
    KeyRow{Component::kOptimizer, "base_optimizer_state"},
    KeyRow{Component::kOptimizer, "fp32_flat_groups"},
    KeyRow{Component::kOptimizer, "single_partition_of_fp32_groups"},
    KeyRow{Component::kScheduler, "scheduler"},
    KeyRow{Component::kScheduler, "schedulers"},
    KeyRow{Component::kScheduler, "sched"},
    KeyRow{Component::kScheduler, "lr_sched"},
    KeyRow{Component::kScheduler, "lr_scheduler"},
    KeyRow{Component::kScheduler, "lr_schedulers"},
    KeyRow{Component::kScheduler, "lr_scheduler_state"},
    KeyRow{Component::kScheduler, "lr_scheduler_states"},
    KeyRow{Component::kScheduler, "lr_scheduler_state_dict"},
    KeyRow{Component::kScheduler, "scheduler_state"},
    KeyRow{Component::kScheduler, "scheduler_states"},
    KeyRow{Component::kScheduler, "scheduler_state_dict"},
    KeyRow{Component::kScheduler, "opt_param_scheduler"},
    KeyRow{Component::kScaler, "scaler"},
    KeyRow{Component::kScaler, "amp"},
    KeyRow{Component::kScaler, "amp_state_dict"},
    KeyRow{Component::kScaler, "amp_scaler"},
    KeyRow{Component::kScaler, "grad_scaler"},
    KeyRow{Component::kScaler, "grad_scaler_state_dict"},
    KeyRow{Component::kScaler, "loss_scaler"},
    KeyRow{Component::kScaler, "scaler_state"},
    KeyRow{Component::kScaler, "scaler_state_dict"},
    KeyRow{Component::kScaler, "MixedPrecision"},
    KeyRow{Component::kScaler, "MixedPrecisionPlugin"},
    KeyRow{Component::kScaler, "NativeMixedPrecisionPlugin"},
    KeyRow{Component::kScaler, "FSDPPrecision"},
    KeyRow{Component::kScaler, "native_amp_scaling_state"},
    KeyRow{Component::kStep, "step"},
    KeyRow{Component::kStep, "steps"},
    KeyRow{Component::kStep, "epoch"},
    KeyRow{Component::kStep, "iteration"},
    KeyRow{Component::kStep, "iterations"},
    KeyRow{Component::kStep, "iter"},
    KeyRow{Component::kStep, "iter_num"},
    KeyRow{Component::kStep, "global_step"},
    KeyRow{Component::kStep, "global_steps"},
    KeyRow{Component::kStep, "global_iteration"},
    KeyRow{Component::kStep, "current_step"},
    KeyRow{Component::kStep, "current_epoch"},
    KeyRow{Component::kStep, "start_epoch"},
    KeyRow{Component::kStep, "last_epoch"},
    KeyRow{Component::kStep, "num_updates"},
    KeyRow{Component::kStep, "update_step"},
    KeyRow{Component::kStep, "train_step"},
    KeyRow{Component::kStep, "train_state"},
    KeyRow{Component::kStep, "trainer_state"},
    KeyRow{Component::kStep, "loops"},
    KeyRow{Component::kRng, "random_state"},
    KeyRow{Component::kRng, "random_states"},
    KeyRow{Component::kRng, "python_random_state"},
    KeyRow{Component::kRng, "numpy_random_state"},
    KeyRow{Component::kRng, "torch_random_state"},
    KeyRow{Component::kRng, "numpy_random_seed"},
    KeyRow{Component::kRng, "torch_manual_seed"},
    KeyRow{Component::kRng, "torch_cuda_manual_seed"},
    KeyRow{Component::kDataCursor, "data_cursor"},
    KeyRow{Component::kDataCursor, "cursor"},
    KeyRow{Component::kDataCursor, "sampler"},
    KeyRow{Component::kDataCursor, "sampler_state"},
    KeyRow{Component::kDataCursor, "sampler_state_dict"},
    KeyRow{Component::kDataCursor, "batch_sampler"},
    KeyRow{Component::kDataCursor, "data_sampler"},
    KeyRow{Component::kDataCursor, "data_state"},
    KeyRow{Component::kDataCursor, "data_iterator"},
    KeyRow{Component::kDataCursor, "dataset_state"},
    KeyRow{Component::kDataCursor, "loader"},
    KeyRow{Component::kDataCursor, "loader_state"},
    KeyRow{Component::kDataCursor, "loader_state_dict"},
    KeyRow{Component::kDataCursor, "train_loader"},
    KeyRow{Component::kDataCursor, "combined_loader"},
    KeyRow{Component::kDataCursor, "dataloader"},
    KeyRow{Component::kDataCursor, "dataloaders"},
    KeyRow{Component::kDataCursor, "data_loader"},
    KeyRow{Component::kDataCursor, "dataloader_state"},
    KeyRow{Component::kDataCursor, "dataloader_state_dict"},
    KeyRow{Component::kDataCursor, "dl_state_dict"},
    KeyRow{Component::kDataCursor, "train_dataloader"},
    KeyRow{Component::kDataCursor, "train_dataloader_dprank"},
    KeyRow{Component::kDataCursor, "consumed_samples"},
    KeyRow{Component::kDataCursor, "consumed_train_samples"},
    KeyRow{Component::kConfig, "config"},
    KeyRow{Component::kConfig, "cfg"},
    KeyRow{Component::kConfig, "args"},
    KeyRow{Component::kConfig, "hparams"},
    KeyRow{Component::kConfig, "hyper_parameters"},
    KeyRow{Component::kConfig, "hparams_name"},
    KeyRow{Component::kConfig, "hparams_type"},
    KeyRow{Component::kConfig, "datamodule_hyper_parameters"},
    KeyRow{Component::kConfig, "datamodule_hparams_name"},
    KeyRow{Component::kConfig, "datamodule_hparams_type"},
    KeyRow{Component::kConfig, "hyperparameters"},
    KeyRow{Component::kConfig, "ds_config"},
    KeyRow{Component::kConfig, "model_args"},
    KeyRow{Component::kConfig, "model_config"},
    KeyRow{Component::kConfig, "train_config"},
    KeyRow{Component::kConfig, "training_args"},
    KeyRow{Component::kEma, "ema"},
    KeyRow{Component::kEma, "ema_model"},
    KeyRow{Component::kEma, "ema_state"},
    KeyRow{Component::kEma, "ema_state_dict"},
    KeyRow{Component::kEma, "ema_model_state_dict"},
    KeyRow{Component::kEma, "ema_weights"},
    KeyRow{Component::kEma, "ema_params"},
    KeyRow{Component::kEma, "model_ema"},
    KeyRow{Component::kEma, "model_ema_state_dict"},
    KeyRow{Component::kEma, "state_dict_ema"},
};

/// Asked for every entry of a checkpoint, of which there may be millions.
Component exact_key(std::string_view key) {
  // Of lists, the indices: no key is one.
  if (key.empty() || (key[0] >= '0' && key[0] <= '9')) return Component::kOther;
  static const auto rows = [] {
    std::unordered_map<std::string_view, Component> map;
    for (const KeyRow& row : kKeys) map.emplace(row.key, row.component);
    return map;
  }();
  const auto row = rows.find(key);
  return row == rows.end() ? Component::kOther : row->second;
}

/// "optimizer_1" and "optimizer1" without their number.
std::string_view without_number(std::string_view key) {
  const std::size_t last = key.find_last_not_of("0123456789");
  if (last == std::string_view::npos || last + 1 == key.size()) return key;
  key = key.substr(0, last + 1);
  if (key.size() > 1 && key.back() == '_') key.remove_suffix(1);
  return key;
}

/// rng*, *_rng_state and its plurals: a source's name stands before or after
/// ("cuda_rng_state_all").
bool names_rng(std::string_view key) {
  return key.substr(0, 3) == "rng" || key.find("_rng_state") != std::string_view::npos;
}

}  // namespace

std::span<const Component> components() {
  return kComponents;
}

std::string_view component_name(Component component) {
  return kNames[static_cast<std::size_t>(component)];
}

std::optional<Component> component_named(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return kComponents[static_cast<std::size_t>(found - kNames.begin())];
}

Component component_of_key(std::string_view key) {
  const Component exact = exact_key(key);
  if (exact != Component::kOther) return exact;
  if (names_rng(key)) return Component::kRng;
  return exact_key(without_number(key));
}

}  // namespace ckptverify
