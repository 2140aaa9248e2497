// Matches the entries of two checkpoints, settles what their types and values settle, and hands
// pairs of tensors of one type and shape to many threads. A tensor that only one side stores, tied
// to one that both have, is compared with its tied partner.
#include "ckptverify/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "src/element.h"
#include "src/mapped_file.h"
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
  const Entry* entry = nullptr;  // of the first side, where both have it
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

  void entries(const Entry& a, const Entry& b) {
    entry_ = &a;
    compare(a.path, a.component, a.node, b.node);
  }

  /// Entries of the first side that differ without a look at their elements.
  std::set<const Entry*>& differing() { return differing_; }

 private:
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

  void add(Difference difference) {
    differences_.push_back(std::move(difference));
    differing_.insert(entry_);
  }

  void tensors(const std::string& path, Component component, const Tensor& a, const Tensor& b) {
    if (a.dtype != b.dtype) {
      add({path, component, DifferenceKind::kDtype, std::string(dtype_name(a.dtype)),
           std::string(dtype_name(b.dtype))});
    } else if (a.shape != b.shape) {
      add({path, component, DifferenceKind::kShape, shape_text(a.shape), shape_text(b.shape)});
    } else if (a.absent != b.absent) {
      add({path, component, DifferenceKind::kValue, node_text(a), node_text(b)});
    } else if (!a.absent) {
      pairs_.push_back(
          {.path = path, .component = component, .first = &a, .second = &b, .entry = entry_});
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
  const Entry* entry_ = nullptr;
  std::set<const Entry*> differing_;
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

/// Whether two tensors of one side have the same bytes, which are not one byte all over: zeros and
/// ones of one shape are equal without being tied.
bool same_telling_bytes(const Checkpoint& side, const Tensor& a, const Tensor& b) {
  const auto first = logical_bytes(side, a);
  const auto second = logical_bytes(side, b);
  if (!first || !second) return false;
  const Bytes bytes = first->view();
  if (bytes.size() != second->view().size() ||
      std::memcmp(bytes.data(), second->view().data(), bytes.size()) != 0) {
    return false;
  }
  const std::size_t element = dtype_size(a.dtype);
  return bytes.size() > element &&
         std::memcmp(bytes.data(), bytes.data() + element, bytes.size() - element) != 0;
}

/// Settles what only one side has: a difference, or a pair of its tensor and the other side's
/// tensor under a path that it is tied to.
class AloneEntries {
 public:
  /// `counterparts` leads from the side's own matched entries to the other side's.
  AloneEntries(const Checkpoint& side, DifferenceKind kind, Names names,
               std::map<const Entry*, const Entry*> counterparts)
      : side_(side),
        groups_(alias_groups(side)),
        kind_(kind),
        names_(names),
        counterparts_(std::move(counterparts)) {}

  void settle(const Entry& entry, Comparison& comparison, std::vector<TensorPair>& pairs) const {
    const Tensor* tensor = std::get_if<Tensor>(&entry.node);
    const Entry* partner = tensor == nullptr ? nullptr : tied_partner(entry, *tensor);
    if (partner == nullptr) {
      comparison.differences.push_back(alone_difference(entry, kind_));
      count_alone(entry, kind_, comparison);
      return;
    }
    const Tensor* other = std::get_if<Tensor>(&counterparts_.at(partner)->node);
    pairs.push_back({.path = entry.path,
                     .component = entry.component,
                     .first = kind_ == DifferenceKind::kMissing ? tensor : other,
                     .second = kind_ == DifferenceKind::kMissing ? other : tensor,
                     .alone = &entry,
                     .tied_to = partner,
                     .kind_alone = kind_});
  }

  static Difference alone_difference(const Entry& entry, DifferenceKind kind) {
    const bool missing = kind == DifferenceKind::kMissing;
    return {.path = entry.path,
            .component = entry.component,
            .kind = kind,
            .first = missing ? node_text(entry.node) : "",
            .second = missing ? "" : node_text(entry.node)};
  }

  static Difference refiled_difference(const Entry& a, const Entry& b) {
    return {.path = a.path,
            .component = a.component,
            .kind = DifferenceKind::kComponent,
            .first = filing_text(a, b),
            .second = filing_text(b, a)};
  }

  static void count_alone(const Entry& entry, DifferenceKind kind, Comparison& comparison) {
    ComponentComparison& component = comparison.components[component_label(entry)];
    ++(kind == DifferenceKind::kMissing ? component.missing : component.unexpected);
  }

 private:
  static std::string filing_text(const Entry& entry, const Entry& other) {
    const std::string label = component_label(entry);
    return label == component_label(other) ? label + " as " + std::string(relative_path(entry))
                                           : label;
  }

  /// The matched entry of this side that the tensor is tied to.
  const Entry* tied_partner(const Entry& entry, const Tensor& tensor) const {
    if (const auto group = groups_.find(alias_root(entry)); group != groups_.end()) {
      for (const Entry* member : group->second) {
        if (has_counterpart(*member, tensor)) return member;
      }
    }
    // A layout that stores each name apart does not say what is tied; the bytes of a matrix do.
    if (names_ != Names::kByMeaning || tensor.absent || tensor.shape.size() < 2) return nullptr;
    for (const Entry& candidate : side_.entries) {
      const Tensor* other = std::get_if<Tensor>(&candidate.node);
      if (other == nullptr || candidate.component != entry.component ||
          !has_counterpart(candidate, tensor)) {
        continue;
      }
      if (same_telling_bytes(side_, tensor, *other)) return &candidate;
    }
    return nullptr;
  }

  bool has_counterpart(const Entry& member, const Tensor& tensor) const {
    const auto counterpart = counterparts_.find(&member);
    if (counterpart == counterparts_.end()) return false;
    const Tensor* other = std::get_if<Tensor>(&counterpart->second->node);
    const Tensor* own = std::get_if<Tensor>(&member.node);
    return own != nullptr && other != nullptr && comparable(tensor, *own) &&
           comparable(tensor, *other);
  }

  const Checkpoint& side_;
  AliasGroups groups_;
  DifferenceKind kind_;
  Names names_;
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

/// Read from a mapped file as it is.
bool in_file(const Checkpoint& checkpoint, const Tensor& tensor) {
  if (!stored_as_read(tensor)) return false;
  const Run& run = tensor.pieces.front().run;
  return run.owned == nullptr && !checkpoint.files[run.file].path().empty();
}

Result<TensorDifference> compare_range(const Sides& sides, const TensorPair& pair,
                                       const RangeWork& work) {
  const auto bytes_of = [&pair](const Checkpoint& side, const Tensor& tensor,
                                const std::string& name) -> Result<LogicalBytes> {
    auto bytes = logical_bytes(side, tensor);
    if (bytes) return bytes;
    Error error = std::move(bytes).error().about(pair.path);
    error.subject = name + ": " + error.subject;
    return error;
  };
  CKPTVERIFY_TRY(const LogicalBytes first,
                 bytes_of(sides.first, *pair.first, sides.options.first_name));
  CKPTVERIFY_TRY(const LogicalBytes second,
                 bytes_of(sides.second, *pair.second, sides.options.second_name));
  CKPTVERIFY_TRY(const Bytes a, slice(first.view(), work.begin, work.end - work.begin));
  CKPTVERIFY_TRY(const Bytes b, slice(second.view(), work.begin, work.end - work.begin));
  if (in_file(sides.first, *pair.first)) fetch_pages(a);
  if (in_file(sides.second, *pair.second)) fetch_pages(b);
  const DType dtype = pair.first->dtype;
  return compare_elements(dtype, a, b, work.begin / dtype_size(dtype), sides.options.tolerance);
}

/// The difference of every pair, parallel to `pairs`.
Result<std::vector<TensorDifference>> compare_pairs(const Sides& sides,
                                                    const std::vector<TensorPair>& pairs) {
  std::vector<RangeWork> works = plan_ranges(pairs);
  for_each_index(works.size(), sides.options.threads, [&](std::size_t index) {
    RangeWork& work = works[index];
    if (sides.options.threads.bytes_read != nullptr) {
      *sides.options.threads.bytes_read += 2 * (work.end - work.begin);
    }
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
      .shape = pair.first->shape,
      .differing_count = found.count,
      .max_absolute = found.max_absolute,
      .max_relative = found.max_relative};
  if (float_layout(pair.first->dtype)) difference.max_ulp = found.max_ulp;
  return difference;
}

void report_pair(const TensorPair& pair, const TensorDifference& found,
                 std::set<const Entry*>& differing, Comparison& comparison) {
  if (pair.alone == nullptr) {
    if (found.count == 0) return;
    comparison.differences.push_back(tensor_difference(pair, found));
    differing.insert(pair.entry);
  } else if (found.count > 0) {
    comparison.differences.push_back(AloneEntries::alone_difference(*pair.alone, pair.kind_alone));
    AloneEntries::count_alone(*pair.alone, pair.kind_alone, comparison);
  } else {
    comparison.notes.push_back("tied, stored once: " + pair.path + " = " + pair.tied_to->path);
    ++comparison.components[component_label(*pair.alone)].equal;
  }
}

/// Bytes of each component's tensors, aliases counted once.
void count_bytes(const Checkpoint& side, std::uint64_t ComponentComparison::*bytes,
                 Comparison& comparison) {
  for (const NamedTensor& named : tensors_with_data(side)) {
    if (!named.entry->alias_of.empty()) continue;
    comparison.components[component_label(*named.entry)].*bytes += logical_size(*named.tensor);
  }
}

/// What the entries that both sides have came to.
void count_matched(const Matching& matching, const std::set<const Entry*>& differing,
                   Comparison& comparison) {
  for (const auto& [a, b] : matching.both) {
    ComponentComparison& component = comparison.components[component_label(*a)];
    ++(differing.contains(a) ? component.differing : component.equal);
  }
  for (const auto& [a, b] : matching.refiled) {
    ++comparison.components[component_label(*a)].differing;
  }
  for (const auto& [a, b] : matching.same_parameter) {
    ++comparison.components[component_label(*a)].equal;
  }
}

}  // namespace

std::string_view difference_kind_name(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kMissing:
      return "missing";
    case DifferenceKind::kUnexpected:
      return "unexpected";
    case DifferenceKind::kComponent:
      return "component";
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

std::string index_text(const Difference& difference) {
  if (!difference.first_index || difference.shape.empty()) return "";
  std::vector<std::uint64_t> index(difference.shape.size());
  std::uint64_t flat = *difference.first_index;
  for (std::size_t d = index.size(); d-- > 0;) {
    const std::uint64_t size = std::max<std::uint64_t>(difference.shape[d], 1);
    index[d] = flat % size;
    flat /= size;
  }
  return shape_text(index);
}

Result<Comparison> compare(const Checkpoint& first, const Checkpoint& second,
                           const ComparisonOptions& options) {
  CKPTVERIFY_TRY(Matching matching, match_entries(first, second, options.rules, options.names));
  Comparison comparison;
  comparison.compared_count =
      matching.both.size() + matching.same_parameter.size() + matching.refiled.size();
  comparison.notes = std::move(matching.notes);
  std::vector<TensorPair> pairs;
  NodeComparison nodes(options.tolerance, comparison.differences, pairs);
  std::map<const Entry*, const Entry*> to_second;
  std::map<const Entry*, const Entry*> to_first;
  for (const auto& [a, b] : matching.both) {
    nodes.entries(*a, *b);
    to_second[a] = b;
    to_first[b] = a;
  }
  for (const auto& [a, b] : matching.refiled) {
    comparison.differences.push_back(AloneEntries::refiled_difference(*a, *b));
    nodes.entries(*a, *b);
    nodes.differing().insert(a);
  }
  const AloneEntries missing(first, DifferenceKind::kMissing, options.names, std::move(to_second));
  for (const Entry* entry : matching.only_first) missing.settle(*entry, comparison, pairs);
  const AloneEntries unexpected(second, DifferenceKind::kUnexpected, options.names,
                                std::move(to_first));
  for (const Entry* entry : matching.only_second) unexpected.settle(*entry, comparison, pairs);
  CKPTVERIFY_TRY(const auto found, compare_pairs({first, second, options}, pairs));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    report_pair(pairs[i], found[i], nodes.differing(), comparison);
  }
  count_matched(matching, nodes.differing(), comparison);
  count_bytes(first, &ComponentComparison::first_bytes, comparison);
  count_bytes(second, &ComponentComparison::second_bytes, comparison);
  std::stable_sort(comparison.differences.begin(), comparison.differences.end(),
                   [](const Difference& a, const Difference& b) { return a.path < b.path; });
  std::sort(comparison.notes.begin(), comparison.notes.end());
  return comparison;
}

}  // namespace ckptverify
