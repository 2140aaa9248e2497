// How two checkpoints, or two tensors, differ: by entry, with where and by how much.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// |a - b| <= absolute + relative * |b|. Zero and zero means bit for bit.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

enum class DifferenceKind {
  kMissing,     // only in the first
  kUnexpected,  // only in the second
  kComponent,   // one path, filed under different components or roots
  kType,        // a tensor on one side, a value on the other
  kDtype,
  kShape,
  kBytes,  // equal as numbers, not bit for bit (-0.0, NaN payloads)
  kValue,
};

std::string_view difference_kind_name(DifferenceKind kind);

struct Difference {
  std::string path;
  Component component = Component::kOther;
  DifferenceKind kind = DifferenceKind::kValue;
  std::string first = {};  // what the first has, for people
  std::string second = {};
  std::optional<std::uint64_t> first_index = {};  // flat, row-major element
  std::vector<std::uint64_t> shape = {};          // of the tensor that it counts in
  std::uint64_t differing_count = 0;              // elements
  std::optional<double> max_absolute = {};
  std::optional<double> max_relative = {};
  std::optional<std::uint64_t> max_ulp = {};  // floating dtypes of one type
};

/// "[0, 2]": the index of the first differing element in every dimension of its tensor; empty where
/// the difference has none.
std::string index_text(const Difference& difference);

/// Renames paths before they are matched: ECMAScript regular expression and replacement. It sees a
/// path inside its component ("module.wte.weight", not "model.module.wte.weight"), so that `^` is
/// the component's root whatever the format; the component itself is not renamed.
struct PathRule {
  std::string pattern;
  std::string replacement;
};

/// What may stand for the same entry.
enum class Names {
  kExact,      // equal paths
  kByMeaning,  // also paths equal but for wrappers' prefixes ("module.", "model."), an optimizer's
               // state by parameter name on one side and by position on the other, tied tensors
               // stored once
};

struct ComparisonOptions {
  Tolerance tolerance = {};
  std::vector<PathRule> rules = {};  // applied to both sides, in order
  Threads threads = {};
  Names names = Names::kExact;
  std::string first_name = "the first";  // what errors call the sides
  std::string second_name = "the second";
};

/// How the entries of one component came out.
struct ComponentComparison {
  std::uint64_t equal = 0;  // within the tolerance, tied tensors that are stored once included
  std::uint64_t differing = 0;
  std::uint64_t missing = 0;      // only in the first
  std::uint64_t unexpected = 0;   // only in the second
  std::uint64_t first_bytes = 0;  // of tensors
  std::uint64_t second_bytes = 0;
};

struct Comparison {
  std::vector<Difference> differences;                         // in path order
  std::uint64_t compared_count = 0;                            // entries in both
  std::vector<std::string> notes;                              // "tied, stored once: a = b"
  std::map<std::string, ComponentComparison> components = {};  // by component_label()
  bool equal() const { return differences.empty(); }
};

/// Entries are matched by path relative to their component, whatever the format. Opaque entries are
/// matched by type alone.
Result<Comparison> compare(const Checkpoint& first, const Checkpoint& second,
                           const ComparisonOptions& options = {});

/// Distance in units in the last place between two values of one floating dtype, by their bit
/// patterns. NaN is far from everything but NaN.
std::uint64_t ulp_distance(DType dtype, std::uint64_t first_bits, std::uint64_t second_bits);

}  // namespace ckptverify
