// Parameters that are unfrozen late, or that belong to one stage of a pipeline, may lawfully have
// counts of their own. Which rank stores a count is chosen for balance among those that hold the
// parameter, so that counts which part exactly by file, of parameters that lie in both, are of two
// saves.
#include "formats/container/dcp_generation.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "formats/container/generation.h"

namespace ckptverify {
namespace {

// One parameter may be late by itself; two that share a file and a count, and no other, are a
// pattern.
constexpr std::size_t kCountsMin = 2;
constexpr std::string_view kStep = ".step";

struct Counts {
  std::set<double> values;
  std::set<std::string> parameters;  // the paths before ".step"
};

using CountsByFile = std::map<std::uint32_t, Counts>;

std::optional<double> number_of(const Checkpoint& checkpoint, const Tensor& tensor) {
  if (!tensor.shape.empty() || tensor.pieces.size() != 1) return std::nullopt;
  if (tensor.dtype != DType::kFloat32 && tensor.dtype != DType::kInt64) return std::nullopt;
  const auto bytes = logical_bytes(checkpoint, tensor);
  if (!bytes || bytes->view().size() != dtype_size(tensor.dtype)) return std::nullopt;
  if (tensor.dtype == DType::kFloat32) {
    float value = 0;
    std::memcpy(&value, bytes->view().data(), sizeof value);
    return value;
  }
  std::int64_t value = 0;
  std::memcpy(&value, bytes->view().data(), sizeof value);
  return static_cast<double>(value);
}

CountsByFile counts_by_file(const Checkpoint& checkpoint) {
  CountsByFile counts;
  for (const Entry& entry : checkpoint.entries) {
    const auto* tensor = std::get_if<Tensor>(&entry.node);
    if (tensor == nullptr || entry.component != Component::kOptimizer) continue;
    if (!entry.path.ends_with(kStep)) continue;
    const auto value = number_of(checkpoint, *tensor);
    if (!value) continue;
    Counts& of_file = counts[tensor->pieces[0].run.file];
    of_file.values.insert(*value);
    of_file.parameters.insert(entry.path.substr(0, entry.path.size() - kStep.size()));
  }
  return counts;
}

/// The files that hold a part of a parameter's other state.
std::map<std::string, std::set<std::uint32_t>> files_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::set<std::uint32_t>> files;
  for (const Entry& entry : checkpoint.entries) {
    const auto* tensor = std::get_if<Tensor>(&entry.node);
    if (tensor == nullptr || entry.component != Component::kOptimizer) continue;
    const std::size_t dot = entry.path.rfind('.');
    if (dot == std::string::npos || entry.path.ends_with(kStep)) continue;
    auto& of_parameter = files[entry.path.substr(0, dot)];
    for (const Piece& piece : tensor->pieces) of_parameter.insert(piece.run.file);
  }
  return files;
}

std::string text_of(double count) {
  return std::to_string(static_cast<std::int64_t>(count));
}

}  // namespace

void check_dcp_steps(Checkpoint& checkpoint) {
  const CountsByFile counts = counts_by_file(checkpoint);
  std::set<double> all;
  for (const auto& [file, of_file] : counts) {
    if (of_file.values.size() != 1) return;  // both counts in one file: of one save
    all.insert(*of_file.values.begin());
  }
  if (all.size() < 2) return;
  const auto files = files_of(checkpoint);
  std::map<double, std::size_t> shared;  // parameters of each count that lie in several files
  std::vector<Evidence> evidence;
  for (const auto& [file, of_file] : counts) {
    const double count = *of_file.values.begin();
    for (const std::string& parameter : of_file.parameters) {
      const auto known = files.find(parameter);
      if (known != files.end() && known->second.size() > 1) ++shared[count];
    }
    evidence.push_back({checkpoint.files[file].name(),
                        text_of(count) + " updates of " +
                            std::to_string(of_file.parameters.size()) + " parameters"});
  }
  const bool certain = std::all_of(all.begin(), all.end(),
                                   [&](double count) { return shared[count] >= kCountsMin; });
  // The odd ones out are those that fewer files agree on.
  std::map<double, std::size_t> file_count;
  for (const auto& [file, of_file] : counts) ++file_count[*of_file.values.begin()];
  const auto odd =
      std::min_element(counts.begin(), counts.end(), [&](const auto& a, const auto& b) {
        return file_count[*a.second.values.begin()] < file_count[*b.second.values.begin()];
      });
  const std::string subject = checkpoint.files[odd->first].name();
  mixed_steps(checkpoint, certain ? Status::kFail : Status::kWarn, subject,
              std::string(certain ? "is" : "may be") +
                  " of another save than the other files; found optimizer steps " +
                  text_of(*all.begin()) + " to " + text_of(*all.rbegin()) +
                  ", which differ exactly by file",
              std::move(evidence));
}

}  // namespace ckptverify
