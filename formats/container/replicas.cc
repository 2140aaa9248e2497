// Components are compared whole: one entry that differs keeps the component apart in every rank.
#include "formats/container/replicas.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

namespace ckptverify {
namespace {

// What a listing reads of a tensor before it believes in its twin: a page or so.
constexpr std::size_t kListingBytes = 65536;

struct Comparing {
  const Checkpoint& checkpoint;
  Depth depth;
};

bool equal_nodes(const Comparing& comparing, const Node& a, const Node& b);

bool equal_tensors(const Comparing& comparing, const Tensor& a, const Tensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.absent != b.absent) return false;
  if (a.absent) return true;
  const auto left = logical_bytes(comparing.checkpoint, a);
  const auto right = logical_bytes(comparing.checkpoint, b);
  if (!left || !right || left->view().size() != right->view().size()) return false;
  std::size_t size = left->view().size();
  if (comparing.depth == Depth::kListing) size = std::min(size, kListingBytes);
  return size == 0 || std::memcmp(left->view().data(), right->view().data(), size) == 0;
}

bool equal_values(const Value& a, const Value& b) {
  return value_cbor(a) == value_cbor(b);  // NaN equals NaN
}

bool equal_parts(const Comparing& comparing, const Composite& a, const Composite& b) {
  return a.kind == b.kind && a.parts.size() == b.parts.size() &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(),
                    [&](const auto& x, const auto& y) {
                      return x.first == y.first && equal_nodes(comparing, x.second, y.second);
                    });
}

bool equal_nodes(const Comparing& comparing, const Node& a, const Node& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<Tensor>(&a))
    return equal_tensors(comparing, *tensor, std::get<Tensor>(b));
  if (const auto* value = std::get_if<Value>(&a)) return equal_values(*value, std::get<Value>(b));
  if (const auto* opaque = std::get_if<Opaque>(&a)) return opaque->type == std::get<Opaque>(b).type;
  return equal_parts(comparing, *std::get<std::shared_ptr<const Composite>>(a),
                     *std::get<std::shared_ptr<const Composite>>(b));
}

using Group = std::vector<const Entry*>;
using Groups = std::map<Component, Group>;  // of one rank

Groups groups_of(const RankEntries& rank) {
  Groups groups;
  for (const Entry& entry : rank.entries) groups[entry.component].push_back(&entry);
  return groups;
}

bool equal_groups(const Comparing& comparing, const Group& a, const Group& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](const Entry* x, const Entry* y) {
           return x->path == y->path && x->root_size == y->root_size &&
                  equal_nodes(comparing, x->node, y->node);
         });
}

/// Each rank has its own by nature, also where two happen to be equal.
bool is_of_a_rank(Component component) {
  return component == Component::kRng || component == Component::kDataCursor;
}

/// The paths of a rank's entries: "model.x" becomes "model.3.x", a bare "x" too.
Entry of_rank(Entry entry, std::uint32_t rank) {
  const std::string part = std::to_string(rank) + ".";
  const auto renamed = [&](const std::string& path) {
    if (entry.root_size == 0 || entry.root_size > path.size())
      return std::string(component_name(entry.component)) + "." + part + path;
    return path.substr(0, entry.root_size) + part + path.substr(entry.root_size);
  };
  if (!entry.alias_of.empty()) entry.alias_of = renamed(entry.alias_of);
  const std::size_t root =
      entry.root_size == 0 ? component_name(entry.component).size() + 1 : entry.root_size;
  entry.path = renamed(entry.path);
  entry.root_size = std::min(root + part.size(), entry.path.size());
  entry.rank = rank;
  return entry;
}

}  // namespace

std::vector<Entry> merge_ranks(const Checkpoint& checkpoint, std::vector<RankEntries> ranks,
                               Depth depth) {
  std::vector<Groups> groups;
  for (const RankEntries& rank : ranks) groups.push_back(groups_of(rank));
  std::vector<Entry> merged;
  for (const Component component : components()) {
    const bool alike =
        !is_of_a_rank(component) && ranks.size() > 1 &&
        std::all_of(groups.begin() + 1, groups.end(), [&](Groups& other) {
          return equal_groups({checkpoint, depth}, groups[0][component], other[component]);
        });
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (alike && i > 0) break;
      for (const Entry* entry : groups[i][component])
        merged.push_back(alike ? *entry : of_rank(*entry, ranks[i].rank));
    }
  }
  return merged;
}

}  // namespace ckptverify
