// What a part of a training state is for. Readers give every entry one; the fingerprint and the
// verdict speak in these words.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace ckptverify {

enum class Component {
  kModel,
  kOptimizer,
  kScheduler,
  kScaler,
  kStep,
  kRng,
  kDataCursor,
  kConfig,
  kEma,
  kOther,
};

/// All components, in the order in which reports list them.
std::span<const Component> components();

/// "model", "optimizer", ..., "data_cursor", ..., "other".
std::string_view component_name(Component component);

/// The component of that name, if there is one.
std::optional<Component> component_named(std::string_view name);

/// The component that a top-level key of a state means by convention ("state_dict" is the model,
/// "lr_scheduler" the scheduler): one table for all layouts, kOther when the key says nothing.
Component component_of_key(std::string_view key);

}  // namespace ckptverify
