// GGUF.
//
//   | "GGUF", version, counts | metadata | tensor infos | zeros | tensor | zeros | tensor | zeros |
//
//   Every tensor begins at a multiple of general.alignment (32 if it is not given), counted from
//   the begin of the data, which is aligned in the file; zeros fill up.
#include "formats/gguf.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/container/gguf_header.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";
constexpr std::string_view kConfigRoot = "config.";
constexpr std::string_view kSplitCountPath = "config.split.count";

Error fault(const GgufTensor& tensor, CauseKind cause, const std::string& message) {
  return Error{.message = "tensor '" + tensor.name + "': " + message,
               .offset = tensor.info_offset,
               .cause = Cause{cause, {}}};
}

/// The bytes of a tensor: whole blocks along its fastest dimension.
Result<std::uint64_t> stored_size(const GgufTensor& tensor, const GgufType& type) {
  const std::uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % type.block_elements != 0)
    return fault(tensor, CauseKind::kTensorRep,
                 "a row ends inside a block; found " + std::to_string(row) +
                     " elements, expected a multiple of " + std::to_string(type.block_elements));
  const auto elements = checked_product(tensor.shape);
  auto size =
      elements ? checked_multiply(*elements / type.block_elements, type.block_bytes) : elements;
  if (!size) return fault(tensor, CauseKind::kBitrot, "the size of its shape does not fit 64 bits");
  return size;
}

Node node_of(const GgufTensor& tensor, const GgufType& type, const Run& run, ByteOrder order) {
  if (type.dtype) {
    Tensor plain = contiguous_tensor(*type.dtype, tensor.shape, run);
    plain.byte_order = order;
    return plain;
  }
  std::vector<std::uint64_t> shape = tensor.shape;
  shape.back() = shape.back() / type.block_elements * type.block_bytes;
  auto composite = std::make_shared<Composite>();
  composite->kind = "gguf." + std::string(type.name);
  composite->parts = {{"blocks", contiguous_tensor(DType::kUint8, std::move(shape), run)}};
  return std::shared_ptr<const Composite>(std::move(composite));
}

class Builder {
 public:
  Builder(const Source& source, GgufHeader header) : header_(std::move(header)) {
    checkpoint_.format = "gguf";
    checkpoint_.files = {source};
    file_size_ = source.bytes().size();
  }
  Result<Checkpoint> build() &&;

 private:
  Result<void> find_data();
  Result<void> add(const GgufTensor& tensor);
  void add_metadata();
  Result<void> check_order() const;
  Result<void> own_padding();
  void own(std::uint64_t offset, std::uint64_t size, Owner owner, std::string label) {
    checkpoint_.coverage.own({{0, offset, size}, owner, std::move(label)});
  }
  void warn(std::string message) {
    const std::string& subject = checkpoint_.files.front().name();
    checkpoint_.findings.push_back({.check = std::string(kCheck),
                                    .status = Status::kWarn,
                                    .subject = subject,
                                    .message = subject + ": " + std::move(message)});
  }

  GgufHeader header_;
  Checkpoint checkpoint_;
  std::uint64_t file_size_ = 0;
  std::uint64_t data_ = 0;  // where the data begin, absolute
  bool all_sizes_known_ = true;
  struct Place {
    std::uint64_t begin = 0;  // absolute
    std::uint64_t end = 0;
    const GgufTensor* tensor = nullptr;
  };
  std::vector<Place> places_;
};

Result<void> Builder::find_data() {
  const std::uint64_t rest = header_.end % header_.alignment;
  CKPTVERIFY_TRY(data_, checked_add(header_.end, rest == 0 ? 0 : header_.alignment - rest));
  return {};
}

Result<void> Builder::add(const GgufTensor& tensor) {
  const GgufType* type = gguf_type(tensor.type);
  if (type == nullptr) {
    all_sizes_known_ = false;
    checkpoint_.uninterpreted.push_back("tensor '" + tensor.name + "': elements of type " +
                                        std::to_string(tensor.type) + ", whose size is not known");
    return {};
  }
  if (tensor.offset % header_.alignment != 0)
    return fault(tensor, CauseKind::kBitrot,
                 "does not begin at a multiple of the alignment; found offset " +
                     std::to_string(tensor.offset) + ", expected a multiple of " +
                     std::to_string(header_.alignment));
  CKPTVERIFY_TRY(const std::uint64_t size, stored_size(tensor, *type));
  CKPTVERIFY_TRY(const std::uint64_t begin, checked_add(data_, tensor.offset));
  CKPTVERIFY_TRY(const std::uint64_t end, checked_add(begin, size));
  if (end > file_size_)
    return fault(tensor, CauseKind::kTrunc,
                 "file ends before it does; found " + std::to_string(file_size_) +
                     " bytes, expected " + std::to_string(end));
  places_.push_back({begin, end, &tensor});
  own(begin, size, Owner::kTensor, tensor.name);
  const Run run{.file = 0, .offset = begin, .stored_size = size, .size = size};
  checkpoint_.entries.push_back({.path = tensor.name,
                                 .node = node_of(tensor, *type, run, header_.byte_order),
                                 .component = Component::kModel});
  return {};
}

void Builder::add_metadata() {
  for (Entry& entry : header_.metadata) {
    entry.path = std::string(kConfigRoot) + entry.path;
    entry.component = Component::kConfig;
    entry.root_size = kConfigRoot.size();
    if (const auto* value = std::get_if<Value>(&entry.node);
        entry.path == kSplitCountPath && value != nullptr && *value != Value(std::int64_t{1}) &&
        *value != Value(std::int64_t{0}))
      warn("holds a part of a model; split.count is " + value_text(*value) + ", expected 1");
    checkpoint_.entries.push_back(std::move(entry));
  }
}

/// In the order of their bytes: no overlap, no hole larger than what alignment makes.
Result<void> Builder::check_order() const {
  std::uint64_t end = data_;
  for (const Place& place : places_) {
    if (place.begin < end && place.end > place.begin)
      return fault(*place.tensor, CauseKind::kLayout,
                   "overlaps the one before it; found begin " + std::to_string(place.begin) +
                       ", expected at least " + std::to_string(end));
    if (all_sizes_known_ && place.begin > end && place.begin - end >= header_.alignment)
      return fault(*place.tensor, CauseKind::kLayout,
                   "leaves a hole before it; found begin " + std::to_string(place.begin) +
                       ", expected less than " + std::to_string(end + header_.alignment));
    end = std::max(end, place.end);
  }
  return {};
}

/// What lies between is zeros, or unknown where a tensor's size is.
Result<void> Builder::own_padding() {
  const Bytes file = checkpoint_.files.front().bytes();
  std::uint64_t end = header_.end;
  const auto fill_up = [&](std::uint64_t begin) -> Result<void> {
    if (begin <= end) return {};
    CKPTVERIFY_TRY(const Bytes bytes, slice(file, end, begin - end));
    const auto other = std::find_if(bytes.begin(), bytes.end(),
                                    [](std::byte byte) { return byte != std::byte{}; });
    if (all_sizes_known_ && other != bytes.end())
      return Error{.message = "padding before byte " + std::to_string(begin) +
                              " is not zero; found " +
                              std::to_string(std::to_integer<int>(*other)) + ", expected 0",
                   .offset = end + static_cast<std::uint64_t>(other - bytes.begin()),
                   .cause = Cause{CauseKind::kBitrot, {}}};
    own(end, begin - end, all_sizes_known_ ? Owner::kPadding : Owner::kUnverifiable,
        all_sizes_known_ ? "padding" : "a tensor of unknown size");
    return {};
  };
  for (const Place& place : places_) {
    CKPTVERIFY_TRY_VOID(fill_up(place.begin));
    end = std::max(end, place.end);
  }
  if (all_sizes_known_ && file_size_ > end && file_size_ - end >= header_.alignment)
    return Error{.message = "bytes follow the last tensor; found a file of " +
                            std::to_string(file_size_) + " bytes, expected less than " +
                            std::to_string(end + header_.alignment),
                 .offset = end,
                 .cause = Cause{CauseKind::kLayout, {}}};
  if (all_sizes_known_ && (file_size_ - data_) % header_.alignment != 0)
    warn("the last tensor is not filled up to the alignment; found a file of " +
         std::to_string(file_size_) + " bytes, expected whole multiples of " +
         std::to_string(header_.alignment) + " after byte " + std::to_string(data_));
  return fill_up(file_size_);
}

Result<Checkpoint> Builder::build() && {
  CKPTVERIFY_TRY_VOID(find_data());
  own(0, header_.end, Owner::kMetadata, "header");
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : header_.tensors) {
    if (!names.insert(tensor.name).second)
      return fault(tensor, CauseKind::kLayout, "is described twice; expected once");
    CKPTVERIFY_TRY_VOID(add(tensor));
  }
  std::stable_sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  CKPTVERIFY_TRY_VOID(check_order());
  if (data_ > file_size_ && !header_.tensors.empty())
    return Error{.message = "file ends before its data; found " + std::to_string(file_size_) +
                            " bytes, expected at least " + std::to_string(data_),
                 .offset = file_size_,
                 .cause = Cause{CauseKind::kTrunc, {}}};
  if (data_ > file_size_) data_ = file_size_;  // nothing but metadata
  CKPTVERIFY_TRY_VOID(own_padding());
  add_metadata();
  sort_entries(checkpoint_);
  return std::move(checkpoint_);
}

}  // namespace

bool sniff_gguf(const Source& source) {
  return !source.is_directory() && has_gguf_magic(source.bytes());
}

Result<Checkpoint> read_gguf(const Source& source, const FormatTable&) {
  CKPTVERIFY_TRY(GgufHeader header, parse_gguf_header(source.bytes()));
  return Builder(source, std::move(header)).build();
}

}  // namespace ckptverify
