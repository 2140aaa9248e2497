// Counts are read from values and from tensors of one element, nothing else.
#include "formats/container/generation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ckptverify {
namespace {

// Whole numbers up to this are exact in a double, and no run takes more steps.
constexpr double kExactMax = 9007199254740992.0;

std::optional<std::int64_t> whole(double number) {
  if (!(std::abs(number) <= kExactMax) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

template <class T>
T element(Bytes bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::optional<std::int64_t> whole_of(const Checkpoint& checkpoint, const Tensor& tensor) {
  if (tensor.absent || tensor.pieces.empty() || logical_size(tensor) != dtype_size(tensor.dtype))
    return std::nullopt;
  const bool known = tensor.dtype == DType::kFloat32 || tensor.dtype == DType::kFloat64 ||
                     tensor.dtype == DType::kInt32 || tensor.dtype == DType::kInt64;
  if (!known) return std::nullopt;
  const auto bytes = logical_bytes(checkpoint, tensor);
  if (!bytes || bytes->view().size() != dtype_size(tensor.dtype)) return std::nullopt;
  if (tensor.dtype == DType::kFloat32) return whole(double{element<float>(bytes->view())});
  if (tensor.dtype == DType::kFloat64) return whole(element<double>(bytes->view()));
  if (tensor.dtype == DType::kInt32) return element<std::int32_t>(bytes->view());
  return element<std::int64_t>(bytes->view());
}

std::optional<std::int64_t> whole_of(const Checkpoint& checkpoint, const Entry& entry) {
  if (const auto* tensor = std::get_if<Tensor>(&entry.node)) return whole_of(checkpoint, *tensor);
  const auto* value = std::get_if<Value>(&entry.node);
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  if (const auto* number = std::get_if<double>(value)) return whole(*number);
  return std::nullopt;
}

const Entry* entry_at(const Checkpoint& checkpoint, std::string_view path) {
  const auto place = std::find_if(checkpoint.entries.begin(), checkpoint.entries.end(),
                                  [path](const Entry& entry) { return entry.path == path; });
  return place == checkpoint.entries.end() ? nullptr : &*place;
}

}  // namespace

std::optional<std::int64_t> whole_number(const Checkpoint& checkpoint, std::string_view path) {
  const Entry* entry = entry_at(checkpoint, path);
  return entry == nullptr ? std::nullopt : whole_of(checkpoint, *entry);
}

std::optional<std::int64_t> optimizer_steps(const Checkpoint& checkpoint,
                                            std::optional<std::uint32_t> rank) {
  std::optional<std::int64_t> most;
  for (const Entry& entry : checkpoint.entries) {
    const bool counts = entry.component == Component::kOptimizer && entry.path.ends_with(".step") &&
                        entry.path.find("state.") != std::string::npos &&
                        entry.path.find("param_groups") == std::string::npos;
    if (!counts || (rank && entry.rank != rank)) continue;
    if (const auto steps = whole_of(checkpoint, entry)) most = std::max(most.value_or(0), *steps);
  }
  return most;
}

std::optional<std::int64_t> scheduler_steps(const Checkpoint& checkpoint, const std::string& root) {
  if (entry_at(checkpoint, root + "num_bad_epochs") != nullptr) return std::nullopt;
  return whole_number(checkpoint, root + "last_epoch");
}

void mixed_steps(Checkpoint& checkpoint, Status status, const std::string& subject,
                 const std::string& message, std::vector<Evidence> evidence) {
  Finding finding{.check = "static.generation",
                  .status = status,
                  .subject = subject,
                  .message = subject + ": " + message,
                  .evidence = std::move(evidence)};
  if (status == Status::kFail) finding.cause = Cause{CauseKind::kUncommitted, {}};
  checkpoint.findings.push_back(std::move(finding));
}

}  // namespace ckptverify
