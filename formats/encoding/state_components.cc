// One pass over the names counts what there is; from that, each entry's place follows.
#include "formats/encoding/state_components.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <variant>

namespace ckptverify {
namespace {

std::string_view first_part(const Entry& entry) {
  return std::string_view(entry.path).substr(0, entry.path.find('.'));
}

bool is_whole_name(const Entry& entry) {
  return entry.path.find('.') == std::string::npos;
}

/// What a model's state dict holds: tensors, and what a module's get_extra_state() gave.
bool is_weight(const Entry& entry) {
  constexpr std::string_view kExtraState = "_extra_state";
  return std::holds_alternative<Tensor>(entry.node) ||
         std::holds_alternative<std::shared_ptr<const Composite>>(entry.node) ||
         entry.path.ends_with(kExtraState);
}

/// Whether a tensor can be a parameter that happens to be called "step": counts are one number, the
/// states of generators are integers.
bool may_be_parameter(const Entry& entry) {
  const auto* tensor = std::get_if<Tensor>(&entry.node);
  if (tensor == nullptr) return false;
  const std::string_view type = dtype_name(tensor->dtype);
  const bool real =
      type.starts_with("float") || type.starts_with("bfloat") || type.starts_with("complex");
  return real && std::any_of(tensor->shape.begin(), tensor->shape.end(),
                             [](std::uint64_t size) { return size > 1; });
}

bool is_own_component(Component component) {
  return component != Component::kModel && component != Component::kOther;
}

/// What the names of a state have in common.
class Names {
 public:
  Names(const std::vector<Entry>& entries, const GroupNames& groups);

  Component component_of(const Entry& entry) const;
  /// Whether the model's key is cut off, and not part of the parameters' names: "model.embed"
  /// beside "lm_head.weight" are the names of one state dict.
  bool cuts_model() const;

 private:
  bool is_bare(const Entry& entry) const;
  bool is_parameter(const Entry& entry) const;

  std::unordered_set<std::string_view> weights_;  // first parts that say nothing, of weights
  std::unordered_set<std::string_view> mixed_;    // groups in which something is no weight
  bool sections_ = false;                         // names go on below another component's key
  bool counters_ = false;      // a whole name is another component's and no parameter
  bool parameters_ = false;    // a whole name is another component's and may be a parameter
  bool model_ = false;         // names go on below a model's key
  bool model_group_ = false;   // and the layout keeps that key by itself
  bool bare_ = false;          // some weights' names say nothing
  bool bare_modules_ = false;  // and go on below their first part
};

Names::Names(const std::vector<Entry>& entries, const GroupNames& groups) {
  for (const Entry& entry : entries) {
    const std::string_view first = first_part(entry);
    if (component_of_key(first) != Component::kOther) continue;
    if (is_weight(entry))
      weights_.insert(first);
    else if (groups.contains(first))
      mixed_.insert(first);
  }
  for (const Entry& entry : entries) {
    const std::string_view first = first_part(entry);
    const Component component = component_of_key(first);
    const bool whole = is_whole_name(entry);
    if (is_own_component(component)) {
      sections_ = sections_ || !whole;
      (may_be_parameter(entry) ? parameters_ : counters_) |= whole;
    } else if (component == Component::kModel && !whole) {
      model_ = true;
      model_group_ = model_group_ || groups.contains(first);
    } else if (is_bare(entry)) {
      bare_ = true;
      bare_modules_ = bare_modules_ || !whole;
    }
  }
}

bool Names::is_bare(const Entry& entry) const {
  const std::string_view first = first_part(entry);
  if (mixed_.contains(first)) return false;
  return is_weight(entry) ? component_of_key(first) == Component::kOther
                          : !is_whole_name(entry) && weights_.contains(first);
}

bool Names::cuts_model() const {
  if (!model_) return false;
  const bool others = counters_ || (parameters_ && !bare_);
  return sections_ || (model_group_ && others) || ((model_group_ || others) && !bare_modules_);
}

/// A whole name that is well known, of a tensor that may be a parameter, among weights whose names
/// say nothing.
bool Names::is_parameter(const Entry& entry) const {
  return is_whole_name(entry) && may_be_parameter(entry) && bare_ && !sections_ && !cuts_model();
}

Component Names::component_of(const Entry& entry) const {
  const Component component = component_of_key(first_part(entry));
  if (is_own_component(component)) return is_parameter(entry) ? Component::kModel : component;
  if (component == Component::kModel) return component;
  return is_bare(entry) && !cuts_model() ? Component::kModel : Component::kOther;
}

}  // namespace

void assign_state_components(std::vector<Entry>& entries, const GroupNames& groups) {
  const Names names(entries, groups);
  for (Entry& entry : entries) {
    const std::string_view first = first_part(entry);
    entry.component = names.component_of(entry);
    const bool keyed = entry.component == component_of_key(first);
    const bool cut = entry.component == Component::kModel ? names.cuts_model() : keyed;
    const bool rooted = keyed && cut && entry.component != Component::kOther;
    entry.root_size = rooted && !is_whole_name(entry) ? first.size() + 1 : 0;
  }
}

}  // namespace ckptverify
