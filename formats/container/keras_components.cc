// Source: keras/src/saving/saving_lib.py (_save_state), optimizers/base_optimizer.py (build),
// legacy/saving/legacy_h5_format.py.
#include "formats/container/keras_components.h"

#include <algorithm>
#include <string_view>

namespace ckptverify {
namespace {

constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kLegacyModel = "model_weights.";
constexpr std::string_view kLegacyOptimizer = "optimizer_weights.";
// The optimizer's first variable counts its updates.
constexpr std::string_view kIterations = "optimizer.vars.0";
constexpr std::string_view kLegacyIterations = ".iteration";
constexpr std::string_view kGenerator = "seed_generator.";

bool has(std::string_view path, std::string_view part) {
  return path.find(part) != std::string_view::npos;
}

void set(Entry& entry, Component component, std::size_t root_size) {
  entry.component = component;
  entry.root_size = root_size;
}

void assign(Entry& entry) {
  const std::string_view path = entry.path;
  if (path == kIterations) return set(entry, Component::kStep, 0);
  if (path.starts_with(kOptimizer)) return set(entry, Component::kOptimizer, kOptimizer.size());
  if (path.starts_with(kLegacyModel)) return set(entry, Component::kModel, kLegacyModel.size());
  if (path.starts_with(kLegacyOptimizer) && path.ends_with(kLegacyIterations))
    return set(entry, Component::kStep, 0);
  if (path.starts_with(kLegacyOptimizer))
    return set(entry, Component::kOptimizer, kLegacyOptimizer.size());
  if (has(path, kGenerator)) return set(entry, Component::kRng, 0);
  if (std::holds_alternative<Tensor>(entry.node)) return set(entry, Component::kModel, 0);
  // Attributes: versions, names, the architecture of the legacy format.
  set(entry, Component::kConfig, 0);
}

}  // namespace

bool is_keras_weights(const std::vector<Entry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    const std::string_view path = entry.path;
    return path.starts_with(kLegacyModel) ||
           (has(path, ".vars.") && (path.starts_with("layers.") || path.starts_with(kOptimizer) ||
                                    path.starts_with("_layer_checkpoint_dependencies.")));
  });
}

void assign_keras_components(std::vector<Entry>& entries) {
  for (Entry& entry : entries) assign(entry);
}

}  // namespace ckptverify
