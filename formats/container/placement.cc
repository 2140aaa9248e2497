// Values are compared as they are hashed, so that a NaN is the same NaN.
#include "formats/container/placement.h"

#include <memory>

namespace ckptverify {
namespace {

bool says_the_same(const Node& a, const Node& b) {
  const auto* x = std::get_if<Value>(&a);
  const auto* y = std::get_if<Value>(&b);
  if (x != nullptr && y != nullptr) return value_cbor(*x) == value_cbor(*y);
  const auto* p = std::get_if<Opaque>(&a);
  const auto* q = std::get_if<Opaque>(&b);
  return p != nullptr && q != nullptr && p->type == q->type;
}

}  // namespace

bool SaidOnce::place(Entry& entry, const Placement& target, const std::string& own_root) {
  entry.path = target.path;
  entry.component = target.component;
  entry.rank = target.rank;
  entry.root_size = target.root_size;
  const auto [known, added] = said_.emplace(entry.path, entry.node);
  if (added) return true;
  if (says_the_same(known->second, entry.node)) return false;
  entry.path = own_root + entry.path;
  entry.component = Component::kOther;
  entry.rank.reset();
  entry.root_size = 0;
  return true;
}

}  // namespace ckptverify
