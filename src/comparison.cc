// Matches the entries of two checkpoints, settles what their types and values settle, and hands
// pairs of tensors of one type and shape to many threads. A tensor that only one side stores, tied
// to one that both have, is compared with its tied partner.
#include "ckptverify/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "src/element.h"
#include "src/matching.h"
#include "src/parallel.h"
#include "src/tensor_comparison.h"
#include "src/tensor_scan.h"

namespace ckptverify {
namespace {

// A range that one thread compares at a time: long enough to forget the cost of handing it out.
constexpr std::uint64_t kRangeSize = std::uint64_t{16} << 20;

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t dimension : shape) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(dimension);
  }
  return text + "]";
}

std::string node_text(const Node& node) {
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    return std::string(dtype_name(tensor->dtype)) + " " + shape_text(tensor->shape) +
           (tensor->absent ? " without data" : "");
  }
  if (const auto* value = std::get_if<Value>(&node)) {
    return std::string(value_type(*value)) + " " + value_text(*value);
  }
  if (const auto* opaque = std::get_if<Opaque>(&node)) return "object of " + opaque->type;
  return std::get<std::shared_ptr<const Composite>>(node)->kind + " tensor";
}

/// Two tensors of one type and shape that have data. With `alone`, they are a tensor that only one
/// side has and the other side's tensor that it is tied to.
struct TensorPair {
  std::string path;
  Component component = Component::kOther;
  const Tensor* first = nullptr;
  const Tensor* second = nullptr;
  const Entry* alone = nullptr;
  const Entry* tied_to = nullptr;
  DifferenceKind kind_alone = DifferenceKind::kMissing;
};

bool comparable(const Tensor& a, const Tensor& b) {
  return a.dtype == b.dtype && a.shape == b.shape && !a.absent && !b.absent;
}

/// Compares whatever two matched nodes are; tensors are put on the list of pairs.
class NodeComparison {
 public:
  NodeComparison(const Tolerance& tolerance, std::vector<Difference>& differences,
                 std::vector<TensorPair>& pairs)
      : tolerance_(tolerance), differences_(differences), pairs_(pairs) {}

  void compare(const std::string& path, Component component, const Node& a, const Node& b) {
    if (a.index() != b.index()) {
      add({path, component, DifferenceKind::kType, node_text(a), node_text(b)});
    } else if (const auto* tensor = std::get_if<Tensor>(&a)) {
      tensors(path, component, *tensor, std::get<Tensor>(b));
    } else if (const auto* value = std::get_if<Value>(&a)) {
      values(path, component, *value, std::get<Value>(b));
    } else if (const auto* opaque = std::get_if<Opaque>(&a)) {
      if (opaque->type != std::get<Opaque>(b).type) {
        add({path, component, DifferenceKind::kType, node_text(a), node_text(b)});
      }
    } else {
      composites(path, component, *std::get<std::shared_ptr<const Composite>>(a),
                 *std::get<std::shared_ptr<const Composite>>(b));
    }
  }

 private:
  void add(Difference difference) { differences_.push_back(std::move(difference)); }

  void tensors(const std::string& path, Component component, const Tensor& a, const Tensor& b) {
    if (a.dtype != b.dtype) {
      add({path, component, DifferenceKind::kDtype, std::string(dtype_name(a.dtype)),
           std::string(dtype_name(b.dtype))});
    } else if (a.shape != b.shape) {
      add({path, component, DifferenceKind::kShape, shape_text(a.shape), shape_text(b.shape)});
    } else if (a.absent != b.absent) {
      add({path, component, DifferenceKind::kValue, node_text(a), node_text(b)});
    } else if (!a.absent) {
      pairs_.push_back({.path = path, .component = component, .first = &a, .second = &b});
    }
  }

  void values(const std::string& path, Component component, const Value& a, const Value& b) {
    if (value_type(a) != value_type(b)) {
      add({path, component, DifferenceKind::kType, node_text(a), node_text(b)});
    } else if (const double* x = std::get_if<double>(&a)) {
      floats(path, component, *x, std::get<double>(b));
    } else if (a != b) {
      add({path, component, DifferenceKind::kValue, value_text(a), value_text(b)});
    }
  }

  void floats(const std::string& path, Component component, double a, double b) {
    const auto bits_a = std::bit_cast<std::uint64_t>(a);
    const auto bits_b = std::bit_cast<std::uint64_t>(b);
    // A value has one NaN, unlike a tensor's element.
    if (bits_a == bits_b || (std::isnan(a) && std::isnan(b))) return;
    const ElementDifference number =
        float_difference(*float_layout(DType::kFloat64), bits_a, bits_b);
    if (tolerated(tolerance_, number.absolute, number.magnitude)) return;
    add({.path = path,
         .component = component,
         .kind = number.same_number ? DifferenceKind::kBytes : DifferenceKind::kValue,
         .first = value_text(a),
         .second = value_text(b),
         .differing_count = 1,
         .max_absolute = number.absolute,
         .max_relative = relative_difference(number.absolute, number.magnitude),
         .max_ulp = number.ulp});
  }

  void composites(const std::string& path, Component component, const Composite& a,
                  const Composite& b) {
    if (a.kind != b.kind) {
      add({path, component, DifferenceKind::kType, a.kind + " tensor", b.kind + " tensor"});
      return;
    }
    const auto find = [](const Composite& composite, const std::string& name) {
      return std::find_if(composite.parts.begin(), composite.parts.end(),
                          [&](const auto& part) { return part.first == name; });
    };
    for (const auto& [name, part] : a.parts) {
      if (const auto other = find(b, name); other != b.parts.end()) {
        compare(path + "." + name, component, part, other->second);
      } else {
        add({path + "." + name, component, DifferenceKind::kMissing, node_text(part), ""});
      }
    }
    for (const auto& [name, part] : b.parts) {
      if (find(a, name) != a.parts.end()) continue;
      add({path + "." + name, component, DifferenceKind::kUnexpected, "", node_text(part)});
    }
  }

  const Tolerance& tolerance_;
  std::vector<Difference>& differences_;
  std::vector<TensorPair>& pairs_;
};

/// Entries with the same stored elements, by the path of the first of them.
using AliasGroups = std::map<std::string_view, std::vector<const Entry*>>;

std::string_view alias_root(const Entry& entry) {
  return entry.alias_of.empty() ? entry.path : entry.alias_of;
}

AliasGroups alias_groups(const Checkpoint& checkpoint) {
  AliasGroups groups;
  for (const Entry& entry : checkpoint.entries) {
    if (!entry.alias_of.empty()) groups[entry.alias_of].push_back(&entry);
  }
  for (const Entry& entry : checkpoint.entries) {
    if (const auto group = groups.find(entry.path); group != groups.end()) {
      group->second.push_back(&entry);
    }
  }
  return groups;
}

/// Settles what only one side has: a difference, or a pair of its tensor and the other side's
/// tensor under a path that it is tied to.
class AloneEntries {
 public:
  /// `counterparts` leads from the side's own matched entries to the other side's.
  AloneEntries(const Checkpoint& side, DifferenceKind kind,
               std::map<const Entry*, const Entry*> counterparts)
      : groups_(alias_groups(side)), kind_(kind), counterparts_(std::move(counterparts)) {}

  void settle(const Entry& entry, std::vector<Difference>& differences,
              std::vector<TensorPair>& pairs) const {
    const auto group = groups_.find(alias_root(entry));
    const Tensor* tensor = std::get_if<Tensor>(&entry.node);
    if (group != groups_.end() && tensor != nullptr) {
      for (const Entry* member : group->second) {
        const auto counterpart = counterparts_.find(member);
        if (counterpart == counterparts_.end()) continue;
        const Tensor* other = std::get_if<Tensor>(&counterpart->second->node);
        if (other == nullptr || !comparable(*tensor, *other)) continue;
        pairs.push_back({.path = entry.path,
                         .component = entry.component,
                         .first = kind_ == DifferenceKind::kMissing ? tensor : other,
                         .second = kind_ == DifferenceKind::kMissing ? other : tensor,
                         .alone = &entry,
                         .tied_to = member,
                         .kind_alone = kind_});
        return;
      }
    }
    differences.push_back(alone_difference(entry, kind_));
  }

  static Difference alone_difference(const Entry& entry, DifferenceKind kind) {
    const bool missing = kind == DifferenceKind::kMissing;
    return {.path = entry.path,
            .component = entry.component,
            .kind = kind,
            .first = missing ? node_text(entry.node) : "",
            .second = missing ? "" : node_text(entry.node)};
  }

 private:
  AliasGroups groups_;
  DifferenceKind kind_;
  std::map<const Entry*, const Entry*> counterparts_;
};

/// A range of one pair, and what was found there.
struct RangeWork {
  std::size_t pair = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  TensorDifference difference = {};
  std::optional<Error> error = {};
};

/// Tensors that lie on both sides as they are read are cut into ranges; the others are gathered
/// whole by one thread, and come first.
std::vector<RangeWork> plan_ranges(const std::vector<TensorPair>& pairs) {
  std::vector<RangeWork> works;
  std::vector<RangeWork> ranges;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::uint64_t size = logical_size(*pairs[i].first);
    if (!stored_as_read(*pairs[i].first) || !stored_as_read(*pairs[i].second)) {
      works.push_back({.pair = i, .begin = 0, .end = size});
      continue;
    }
    for (std::uint64_t begin = 0; begin < size; begin += kRangeSize) {
      ranges.push_back({.pair = i, .begin = begin, .end = std::min(size, begin + kRangeSize)});
    }
  }
  std::move(ranges.begin(), ranges.end(), std::back_inserter(works));
  return works;
}

/// The two checkpoints and how to compare them.
struct Sides {
  const Checkpoint& first;
  const Checkpoint& second;
  const ComparisonOptions& options;
};

Result<TensorDifference> compare_range(const Sides& sides, const TensorPair& pair,
                                       const RangeWork& work) {
  CKPTVERIFY_TRY(const LogicalBytes first, logical_bytes(sides.first, *pair.first));
  CKPTVERIFY_TRY(const LogicalBytes second, logical_bytes(sides.second, *pair.second));
  CKPTVERIFY_TRY(const Bytes a, slice(first.view(), work.begin, work.end - work.begin));
  CKPTVERIFY_TRY(const Bytes b, slice(second.view(), work.begin, work.end - work.begin));
  const DType dtype = pair.first->dtype;
  return compare_elements(dtype, a, b, work.begin / dtype_size(dtype), sides.options.tolerance);
}

/// The difference of every pair, parallel to `pairs`.
Result<std::vector<TensorDifference>> compare_pairs(const Sides& sides,
                                                    const std::vector<TensorPair>& pairs) {
  std::vector<RangeWork> works = plan_ranges(pairs);
  for_each_index(works.size(), sides.options.threads, [&](std::size_t index) {
    RangeWork& work = works[index];
    auto difference = compare_range(sides, pairs[work.pair], work);
    if (difference) {
      work.difference = *std::move(difference);
    } else {
      work.error = std::move(difference).error();
    }
  });
  std::vector<TensorDifference> differences(pairs.size());
  for (RangeWork& work : works) {
    if (work.error) return std::move(*work.error).about(pairs[work.pair].path);
    merge(differences[work.pair], work.difference);
  }
  return differences;
}

Difference tensor_difference(const TensorPair& pair, const TensorDifference& found) {
  Difference difference{
      .path = pair.path,
      .component = pair.component,
      .kind = found.same_numbers ? DifferenceKind::kBytes : DifferenceKind::kValue,
      .first = found.first_text,
      .second = found.second_text,
      .first_index = found.first_index,
      .differing_count = found.count,
      .max_absolute = found.max_absolute,
      .max_relative = found.max_relative};
  if (float_layout(pair.first->dtype)) difference.max_ulp = found.max_ulp;
  return difference;
}

void report_pair(const TensorPair& pair, const TensorDifference& found, Comparison& comparison) {
  if (pair.alone == nullptr) {
    if (found.count > 0) comparison.differences.push_back(tensor_difference(pair, found));
  } else if (found.count > 0) {
    comparison.differences.push_back(AloneEntries::alone_difference(*pair.alone, pair.kind_alone));
  } else {
    comparison.notes.push_back("tied, stored once: " + pair.path + " = " + pair.tied_to->path);
  }
}

}  // namespace

std::string_view difference_kind_name(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kMissing:
      return "missing";
    case DifferenceKind::kUnexpected:
      return "unexpected";
    case DifferenceKind::kType:
      return "type";
    case DifferenceKind::kDtype:
      return "dtype";
    case DifferenceKind::kShape:
      return "shape";
    case DifferenceKind::kBytes:
      return "bytes";
    case DifferenceKind::kValue:
      return "value";
  }
  CKPTVERIFY_ASSERT(false);
}

Result<Comparison> compare(const Checkpoint& first, const Checkpoint& second,
                           const ComparisonOptions& options) {
  CKPTVERIFY_TRY(const Matching matching, match_entries(first, second, options.rules));
  Comparison comparison;
  comparison.compared_count = matching.both.size();
  std::vector<TensorPair> pairs;
  NodeComparison nodes(options.tolerance, comparison.differences, pairs);
  std::map<const Entry*, const Entry*> to_second;
  std::map<const Entry*, const Entry*> to_first;
  for (const auto& [a, b] : matching.both) {
    nodes.compare(a->path, a->component, a->node, b->node);
    to_second[a] = b;
    to_first[b] = a;
  }
  const AloneEntries missing(first, DifferenceKind::kMissing, std::move(to_second));
  for (const Entry* entry : matching.only_first) {
    missing.settle(*entry, comparison.differences, pairs);
  }
  const AloneEntries unexpected(second, DifferenceKind::kUnexpected, std::move(to_first));
  for (const Entry* entry : matching.only_second) {
    unexpected.settle(*entry, comparison.differences, pairs);
  }
  CKPTVERIFY_TRY(const auto found, compare_pairs({first, second, options}, pairs));
  for (std::size_t i = 0; i < pairs.size(); ++i) report_pair(pairs[i], found[i], comparison);
  std::stable_sort(comparison.differences.begin(), comparison.differences.end(),
                   [](const Difference& a, const Difference& b) { return a.path < b.path; });
  std::sort(comparison.notes.begin(), comparison.notes.end());
  return comparison;
}

}  // namespace ckptverify
