// One pass that looks for names of other components, then one assignment.
#include "formats/container/flat_state.h"

#include <string>

namespace ckptverify {

void assign_flat_components(std::vector<Entry>& entries) {
  bool others = false;        // some name begins with another component's key
  bool others_below = false;  // and goes on below it
  bool model = false;         // some name is a model's or says nothing
  for (const Entry& entry : entries) {
    const std::string first = entry.path.substr(0, entry.path.find('.'));
    const Component component = component_of_key(first);
    const bool other = component != Component::kModel && component != Component::kOther;
    others = others || other;
    others_below = others_below || (other && first != entry.path);
    model = model || !other;
  }
  // A parameter may be called "step": a leaf of that name makes no component of its own.
  if (others && (others_below || !model)) return assign_components(entries);
  for (Entry& entry : entries) {
    entry.component = Component::kModel;
    entry.root_size = 0;
  }
}

}  // namespace ckptverify
