// Each leaf is judged by the thread that reads it; a tensor's sum is made under a lock, once a
// leaf.
#include "src/finite.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "src/element.h"
#include "src/tensor_scan.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.finite";
// Names in one finding: enough to see a pattern, few enough to read.
constexpr std::size_t kShownMax = 8;

struct TensorContent {
  std::uint64_t not_finite_count = 0;
  std::uint64_t first_not_finite = 0;  // element; meaningful where the count is not zero
  bool all_zero = true;
};

bool is_zero(Bytes bytes) {
  return bytes.empty() || (bytes.front() == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

/// Numbers (not elements: a complex one has two) that are not finite: how many, and the first.
template <class Unsigned>
void scan_numbers(const FloatLayout& layout, Bytes bytes, TensorContent& content) {
  const auto mask = static_cast<Unsigned>(layout.not_finite_mask);
  const auto pattern = static_cast<Unsigned>(layout.not_finite);
  const std::size_t count = bytes.size() / sizeof(Unsigned);
  const auto not_finite = [&](std::size_t i) {
    Unsigned bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    return static_cast<Unsigned>(bits & mask) == pattern;
  };
  for (std::size_t i = 0; i < count; ++i) content.not_finite_count += not_finite(i) ? 1U : 0U;
  if (content.not_finite_count == 0) return;
  while (!not_finite(content.first_not_finite)) ++content.first_not_finite;
}

TensorContent scan_leaf(DType dtype, Bytes bytes) {
  TensorContent content;
  content.all_zero = is_zero(bytes);
  const auto layout = float_layout(dtype);
  if (!layout || layout->not_finite_mask == 0 || content.all_zero) return content;
  switch (layout->bits) {
    case 8:
      scan_numbers<std::uint8_t>(*layout, bytes, content);
      break;
    case 16:
      scan_numbers<std::uint16_t>(*layout, bytes, content);
      break;
    case 32:
      scan_numbers<std::uint32_t>(*layout, bytes, content);
      break;
    case 64:
      scan_numbers<std::uint64_t>(*layout, bytes, content);
      break;
    default:
      break;
  }
  if (element_kind(dtype) == ElementKind::kComplex) content.first_not_finite /= 2;
  return content;
}

void add_leaf(const Leaf& leaf, std::uint64_t element_size, TensorContent found,
              TensorContent& sum) {
  sum.all_zero = sum.all_zero && found.all_zero;
  if (found.not_finite_count == 0) return;
  const std::uint64_t index = leaf.offset / element_size + found.first_not_finite;
  sum.first_not_finite = sum.not_finite_count == 0 ? index : std::min(sum.first_not_finite, index);
  sum.not_finite_count += found.not_finite_count;
}

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
                    std::to_string(tensor_count) + " of " + std::to_string(tensors.size()) +
                    " tensors, expected none";
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
         std::to_string(logical_size(tensor) / dtype_size(tensor.dtype)) + " elements, all zero"});
  }
  if (tensor_count == 0) return std::nullopt;
  finding.evidence.push_back({"count", std::to_string(tensor_count)});
  finding.message = finding.subject + ": every element is zero; found " +
                    std::to_string(tensor_count) + " such tensors in the model";
  return finding;
}

}  // namespace

std::vector<Finding> check_finite(const Checkpoint& checkpoint, Threads threads) {
  std::vector<NamedTensor> named = tensors_with_data(checkpoint);
  std::erase_if(named, [](const NamedTensor& one) { return !one.entry->alias_of.empty(); });
  std::vector<const Tensor*> tensors;
  for (const NamedTensor& one : named) tensors.push_back(one.tensor);
  std::vector<TensorContent> contents(tensors.size());
  std::mutex mutex;
  auto errors = scan_leaves(checkpoint, tensors, threads, [&](const Leaf& leaf) {
    const DType dtype = tensors[leaf.tensor]->dtype;
    const TensorContent found = scan_leaf(dtype, leaf.bytes);
    const std::lock_guard lock(mutex);
    add_leaf(leaf, dtype_size(dtype), found, contents[leaf.tensor]);
  });
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    contents[i].all_zero = false;  // nothing is known about it
    findings.push_back(finding_of(std::move(*errors[i]).about(named[i].path), std::string(kCheck)));
  }
  if (auto finding = not_finite_finding(named, contents)) findings.push_back(std::move(*finding));
  const bool all_finite = findings.empty();
  if (auto finding = all_zero_finding(named, contents)) findings.push_back(std::move(*finding));
  if (!all_finite) return findings;
  const auto floating = std::count_if(tensors.begin(), tensors.end(), [](const Tensor* tensor) {
    return float_layout(tensor->dtype).has_value();
  });
  if (floating == 0) {
    findings.push_back({.check = std::string(kCheck),
                        .status = Status::kNotApplicable,
                        .message = "no tensor has a floating type"});
  } else {
    findings.push_back(
        {.check = std::string(kCheck),
         .message = "no NaN and no Infinity in " + std::to_string(floating) + " floating tensors"});
  }
  return findings;
}

}  // namespace ckptverify
