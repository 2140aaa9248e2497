// The findings of "static.finite" from what a pass over the bytes saw.
#include "src/finite.h"

#include <algorithm>

#include "ckptverify/count_text.h"
#include "src/checksums.h"
#include "src/element.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.finite";
// Names in one finding: enough to see a pattern, few enough to read.
constexpr std::size_t kShownMax = 8;

std::optional<Finding> not_finite_finding(const std::vector<NamedTensor>& tensors,
                                          const std::vector<TensorContent>& contents) {
  Finding finding{.check = std::string(kCheck),
                  .status = Status::kWarn,
                  .cause = Cause{.kind = CauseKind::kValues, .component = {}},
                  .message = {}};
  std::uint64_t tensor_count = 0;
  std::uint64_t number_count = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (contents[i].not_finite_count == 0) continue;
    if (tensor_count == 0) {
      finding.subject = tensors[i].path;
      finding.evidence.push_back({"first_index", std::to_string(contents[i].first_not_finite)});
    }
    number_count += contents[i].not_finite_count;
    if (++tensor_count > kShownMax) continue;
    finding.evidence.push_back({tensors[i].path, std::to_string(contents[i].not_finite_count) +
                                                     " not finite, the first at index " +
                                                     std::to_string(contents[i].first_not_finite)});
  }
  if (tensor_count == 0) return std::nullopt;
  finding.evidence.push_back({"count", std::to_string(number_count)});
  finding.message = finding.subject + ": index " + finding.evidence.front().value +
                    ": NaN or Infinity; found " + std::to_string(number_count) + " in " +
                    std::to_string(tensor_count) + " of " + count_text(tensors.size(), "tensor") +
                    ", expected none";
  return finding;
}

std::optional<Finding> all_zero_finding(const std::vector<NamedTensor>& tensors,
                                        const std::vector<TensorContent>& contents) {
  Finding finding{.check = std::string(kCheck), .status = Status::kWarn, .message = {}};
  std::uint64_t tensor_count = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = *tensors[i].tensor;
    const bool several = logical_size(tensor) > dtype_size(tensor.dtype);
    if (!contents[i].all_zero || !several) continue;
    if (tensors[i].entry->component != Component::kModel) continue;
    if (tensor_count == 0) finding.subject = tensors[i].path;
    if (++tensor_count > kShownMax) continue;
    finding.evidence.push_back(
        {tensors[i].path,
         count_text(logical_size(tensor) / dtype_size(tensor.dtype), "element") + ", all zero"});
  }
  if (tensor_count == 0) return std::nullopt;
  finding.evidence.push_back({"count", std::to_string(tensor_count)});
  finding.message = finding.subject + ": every element is zero; found " +
                    count_text(tensor_count, "such tensor") + " in the model";
  return finding;
}

/// The bytes of the tensor are damaged, and a checksum has said so.
Finding damaged_finding(const std::string& path) {
  return {.check = std::string(kCheck),
          .status = Status::kNotObserved,
          .subject = path,
          .message = path +
                     ": its numbers were not looked at, since a checksum of its bytes is "
                     "wrong (static.checksums)"};
}

Finding unread_finding(const std::string& path, Error error) {
  return finding_of(std::move(error).about(path), std::string(kCheck));
}

}  // namespace

std::vector<Finding> finite_findings(const Checkpoint& checkpoint, const TensorsToRead& read,
                                     const Pass& pass, NotFinite not_finite) {
  const std::vector<ByteRange> damaged = damaged_ranges(checkpoint, pass);
  std::vector<NamedTensor> named;
  std::vector<TensorContent> contents;
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < read.tensors.size(); ++i) {
    const NamedTensor& one = read.named[read.names[i]];
    if (!one.entry->alias_of.empty()) continue;  // its elements are another's
    named.push_back(one);
    contents.push_back(pass.contents[i]);
    if (!pass.errors[i]) continue;
    contents.back().all_zero = false;  // nothing is known about it
    findings.push_back(lies_in(*one.tensor, damaged) ? damaged_finding(one.path)
                                                     : unread_finding(one.path, *pass.errors[i]));
  }
  const Status status = not_finite == NotFinite::kFail ? Status::kFail : Status::kWarn;
  if (auto finding = not_finite_finding(named, contents)) {
    finding->status = status;
    findings.push_back(std::move(*finding));
  }
  const bool all_finite = findings.empty();
  if (auto finding = all_zero_finding(named, contents)) {
    finding->status = status;
    if (status == Status::kFail)
      finding->cause = Cause{.kind = CauseKind::kValues, .component = {}};
    findings.push_back(std::move(*finding));
  }
  if (!all_finite) return findings;
  const auto floating = std::count_if(named.begin(), named.end(), [](const NamedTensor& one) {
    return float_layout(one.tensor->dtype).has_value();
  });
  if (floating == 0) {
    findings.push_back({.check = std::string(kCheck),
                        .status = Status::kNotApplicable,
                        .message = "no tensor has a floating type"});
  } else {
    findings.push_back(
        {.check = std::string(kCheck),
         .message = "no NaN and no Infinity in " +
                    count_text(static_cast<std::uint64_t>(floating), "floating tensor")});
  }
  return findings;
}

}  // namespace ckptverify
