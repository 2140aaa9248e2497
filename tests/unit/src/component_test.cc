// Which component a top-level key means.
#include "ckptverify/component.h"

#include <gtest/gtest.h>

namespace ckptverify {
namespace {

struct Row {
  const char* key;
  Component component;
};

TEST(ComponentOfKey, KnowsTheConventionsOfAllLayouts) {
  const Row rows[] = {
      {"model", Component::kModel},
      {"state_dict", Component::kModel},
      {"model_state_dict", Component::kModel},
      {"net", Component::kModel},
      {"module", Component::kModel},
      {"optimizer", Component::kOptimizer},
      {"optimizer_state_dict", Component::kOptimizer},
      {"optim", Component::kOptimizer},
      {"optimizer_states", Component::kOptimizer},
      {"optimizer_1", Component::kOptimizer},
      {"scheduler", Component::kScheduler},
      {"lr_scheduler", Component::kScheduler},
      {"lr_schedulers", Component::kScheduler},
      {"opt_param_scheduler", Component::kScheduler},
      {"scheduler_0", Component::kScheduler},
      {"scaler", Component::kScaler},
      {"amp", Component::kScaler},
      {"grad_scaler", Component::kScaler},
      {"MixedPrecision", Component::kScaler},
      {"step", Component::kStep},
      {"epoch", Component::kStep},
      {"global_step", Component::kStep},
      {"iteration", Component::kStep},
      {"train_state", Component::kStep},
      {"rng", Component::kRng},
      {"rng_state", Component::kRng},
      {"rng_state_3", Component::kRng},
      {"rng_tracker_states", Component::kRng},
      {"torch_rng_state", Component::kRng},
      {"cuda_rng_state_all", Component::kRng},
      {"np_rng_states", Component::kRng},
      {"random_states", Component::kRng},
      {"random_states_0", Component::kRng},
      {"data_cursor", Component::kDataCursor},
      {"sampler", Component::kDataCursor},
      {"loader", Component::kDataCursor},
      {"dataloader", Component::kDataCursor},
      {"train_dataloader_dprank000", Component::kDataCursor},
      {"config", Component::kConfig},
      {"args", Component::kConfig},
      {"cfg", Component::kConfig},
      {"hparams", Component::kConfig},
      {"hyper_parameters", Component::kConfig},
      {"ema", Component::kEma},
      {"model_ema", Component::kEma},
      {"ema_state_dict", Component::kEma},
  };
  for (const Row& row : rows)
    EXPECT_EQ(component_name(component_of_key(row.key)), component_name(row.component)) << row.key;
}

TEST(ComponentOfKey, SaysOtherWhereTheKeySaysNothing) {
  for (const char* key : {"", "conv1", "Model", "modeling", "best_loss", "0", "123", "_1",
                          "stepper", "layer_norm", "warning"})
    EXPECT_EQ(component_name(component_of_key(key)), "other") << key;
}

TEST(ComponentNames, AreReadBackAsTheirComponents) {
  EXPECT_EQ(components().size(), 10U);
  for (const Component component : components())
    EXPECT_EQ(component_named(component_name(component)), component);
  EXPECT_EQ(component_name(Component::kDataCursor), "data_cursor");
  EXPECT_EQ(component_named("Model"), std::nullopt);
}

}  // namespace
}  // namespace ckptverify
