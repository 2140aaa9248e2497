// Every size that the header states is compared with the bytes that are there. Source:
// huggingface/safetensors, safetensors/src/tensor.rs.
#include "formats/container/safetensors_header.h"

#include <algorithm>
#include <array>

#include "ckptverify/json.h"

namespace ckptverify {
namespace {

constexpr std::uint64_t kPrefixSize = 8;
constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // the format's own limit
constexpr std::string_view kMetadataKey = "__metadata__";

constexpr std::array kDTypes = {
    SafetensorsType{"BOOL", 8, DType::kBool},
    SafetensorsType{"F4", 4, DType::kFloat4E2m1fnX2},
    SafetensorsType{"F6_E2M3", 6, std::nullopt},
    SafetensorsType{"F6_E3M2", 6, std::nullopt},
    SafetensorsType{"U8", 8, DType::kUint8},
    SafetensorsType{"I8", 8, DType::kInt8},
    SafetensorsType{"F8_E5M2", 8, DType::kFloat8E5m2},
    SafetensorsType{"F8_E4M3", 8, DType::kFloat8E4m3fn},
    SafetensorsType{"F8_E8M0", 8, DType::kFloat8E8m0fnu},
    SafetensorsType{"F8_E4M3FNUZ", 8, DType::kFloat8E4m3fnuz},
    SafetensorsType{"F8_E5M2FNUZ", 8, DType::kFloat8E5m2fnuz},
    SafetensorsType{"I16", 16, DType::kInt16},
    SafetensorsType{"U16", 16, DType::kUint16},
    SafetensorsType{"F16", 16, DType::kFloat16},
    SafetensorsType{"BF16", 16, DType::kBfloat16},
    SafetensorsType{"I32", 32, DType::kInt32},
    SafetensorsType{"U32", 32, DType::kUint32},
    SafetensorsType{"F32", 32, DType::kFloat32},
    SafetensorsType{"C64", 64, DType::kComplex64},
    SafetensorsType{"F64", 64, DType::kFloat64},
    SafetensorsType{"I64", 64, DType::kInt64},
    SafetensorsType{"U64", 64, DType::kUint64},
};

Error structural(std::uint64_t offset, std::string message) {
  return Error{
      .message = std::move(message), .offset = offset, .cause = Cause{CauseKind::kStStruct, {}}};
}

Error truncated(std::uint64_t found, std::uint64_t expected, std::string_view what) {
  return Error{.message = "file ends before " + std::string(what) + " does; found " +
                          std::to_string(found) + " bytes, expected " + std::to_string(expected),
               .offset = found,
               .cause = Cause{CauseKind::kTrunc, {}}};
}

/// The header's place in the file, its JSON text still unread.
struct Prelude {
  std::string_view header;         // N bytes, padding included
  std::uint64_t buffer_begin = 0;  // 8 + N
};

Result<std::uint64_t> header_size(Bytes file) {
  if (file.size() < kPrefixSize) return truncated(file.size(), kPrefixSize, "the header's size");
  ByteReader reader(file);
  CKPTVERIFY_TRY(const std::uint64_t size, reader.u64());
  if (size > kHeaderBytesMax)
    return structural(0, "header is too large; found " + std::to_string(size) +
                             " bytes, expected at most " + std::to_string(kHeaderBytesMax));
  if (file.size() > kPrefixSize && file[kPrefixSize] != std::byte{'{'})
    return structural(kPrefixSize, "header does not begin with '{'; found byte " +
                                       std::to_string(std::to_integer<int>(file[kPrefixSize])) +
                                       ", expected 123");
  return size;
}

Result<Prelude> parse_prelude(Bytes file) {
  CKPTVERIFY_TRY(const std::uint64_t size, header_size(file));
  CKPTVERIFY_TRY(const std::uint64_t buffer_begin, checked_add(kPrefixSize, size));
  if (buffer_begin > file.size()) return truncated(file.size(), buffer_begin, "the header");
  CKPTVERIFY_TRY(const Bytes header, slice(file, kPrefixSize, size));
  return Prelude{.header = as_text(header), .buffer_begin = buffer_begin};
}

Error wrong_member(const SafetensorsTensor& tensor, std::string_view key, std::string_view expected,
                   const Json* found) {
  return structural(tensor.offset, "tensor '" + tensor.name + "': wrong " + std::string(key) +
                                       "; found " + (found ? found->text() : "nothing") +
                                       ", expected " + std::string(expected));
}

Result<std::vector<std::uint64_t>> unsigned_list(const SafetensorsTensor& tensor,
                                                 const Json& object, std::string_view key) {
  const Json* list = object.find(key);
  if (list == nullptr || list->array() == nullptr)
    return wrong_member(tensor, key, "a list of unsigned integers", list);
  std::vector<std::uint64_t> numbers;
  for (const Json& item : *list->array()) {
    const auto number = item.unsigned_integer();
    if (!number) return wrong_member(tensor, key, "a list of unsigned integers", list);
    numbers.push_back(*number);
  }
  return numbers;
}

/// The type and shape of one member; every key known, every value of its type.
Result<SafetensorsTensor> parse_tensor(const Json::Member& member, std::uint64_t offset) {
  SafetensorsTensor tensor{.name = member.first, .offset = offset};
  const Json::Object* object = member.second.object();
  if (object == nullptr) return wrong_member(tensor, "description", "an object", &member.second);
  for (const auto& [key, value] : *object)
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      return structural(offset, "tensor '" + tensor.name + "': unknown key; found '" + key +
                                    "', expected dtype, shape or data_offsets");
  const Json* dtype = member.second.find("dtype");
  if (dtype == nullptr || dtype->string() == nullptr)
    return wrong_member(tensor, "dtype", "a string", dtype);
  const auto row = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const SafetensorsType& known) {
    return known.name == *dtype->string();
  });
  if (row == kDTypes.end()) return wrong_member(tensor, "dtype", "a type of the format", dtype);
  tensor.type = *row;
  CKPTVERIFY_TRY(tensor.shape, unsigned_list(tensor, member.second, "shape"));
  CKPTVERIFY_TRY(const auto offsets, unsigned_list(tensor, member.second, "data_offsets"));
  if (offsets.size() != 2)
    return wrong_member(tensor, "data_offsets", "two integers", member.second.find("data_offsets"));
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  if (tensor.end < tensor.begin)
    return structural(offset, "tensor '" + tensor.name + "': ends before it begins; found end " +
                                  std::to_string(tensor.end) + ", expected at least " +
                                  std::to_string(tensor.begin));
  return tensor;
}

/// Shape times dtype is exactly the range of the buffer.
Result<void> check_size(const SafetensorsTensor& tensor) {
  const auto elements = checked_product(tensor.shape);
  const auto bits = elements ? checked_multiply(*elements, tensor.type.bits) : elements;
  if (!bits)
    return structural(tensor.offset, "tensor '" + tensor.name +
                                         "': size of the shape does not fit 64 bits; found " +
                                         std::to_string(tensor.shape.size()) + " dimensions");
  if (*bits % 8 != 0)
    return structural(tensor.offset, "tensor '" + tensor.name +
                                         "': shape ends inside a byte; found " +
                                         std::to_string(*bits) + " bits, expected a multiple of 8");
  if (*bits / 8 != tensor.end - tensor.begin)
    return structural(tensor.offset, "tensor '" + tensor.name +
                                         "': size does not match shape and dtype; found " +
                                         std::to_string(tensor.end - tensor.begin) +
                                         " bytes, expected " + std::to_string(*bits / 8));
  return {};
}

/// The tensors in the order of their bytes: no hole, no overlap, nothing after the last one.
Result<void> check_tiling(std::vector<SafetensorsTensor>& tensors, const Prelude& prelude,
                          std::uint64_t file_size) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t end = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.begin != end)
      return structural(tensor.offset, "tensor '" + tensor.name + "': " +
                                           (tensor.begin < end ? "overlaps the one before it"
                                                               : "leaves a hole before it") +
                                           "; found begin " + std::to_string(tensor.begin) +
                                           ", expected " + std::to_string(end));
    CKPTVERIFY_TRY_VOID(check_size(tensor));
    end = tensor.end;
  }
  CKPTVERIFY_TRY(const std::uint64_t expected, checked_add(prelude.buffer_begin, end));
  if (file_size < expected) return truncated(file_size, expected, "the last tensor");
  if (file_size > expected)
    return structural(expected, "bytes follow the last tensor; found a file of " +
                                    std::to_string(file_size) + " bytes, expected " +
                                    std::to_string(expected));
  return {};
}

Result<void> check_metadata(const Json& metadata, std::uint64_t offset) {
  if (metadata.object() == nullptr)
    return structural(offset, "__metadata__ is no object; found " + metadata.text());
  for (const auto& [key, value] : *metadata.object())
    if (value.string() == nullptr)
      return structural(offset, "__metadata__ '" + key + "' is no string; found " + value.text() +
                                    ", expected a string");
  return {};
}

Result<SafetensorsHeader> parse_header(const Prelude& prelude) {
  SafetensorsHeader header{.tensors = {}, .metadata = {}, .buffer_begin = prelude.buffer_begin};
  header.json_size = prelude.header.find_last_not_of(' ') + 1;
  const std::string_view text = prelude.header.substr(0, header.json_size);
  auto parsed = Json::parse(text);
  if (!parsed)
    return structural(kPrefixSize + parsed.error().offset.value_or(0),
                      "header is no strict JSON: " + parsed.error().message);
  if (parsed->object() == nullptr) return structural(kPrefixSize, "header is no JSON object");
  const std::vector<TextRange> ranges = json_member_ranges(text);
  CKPTVERIFY_ASSERT(ranges.size() == parsed->object()->size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Json::Member& member = (*parsed->object())[i];
    const std::uint64_t offset = kPrefixSize + ranges[i].begin;
    if (member.first == kMetadataKey) {
      CKPTVERIFY_TRY_VOID(check_metadata(member.second, offset));
      header.metadata_range = ranges[i];
      for (const auto& [key, value] : *member.second.object())
        header.metadata.emplace_back(key, *value.string());
      continue;
    }
    CKPTVERIFY_TRY(SafetensorsTensor tensor, parse_tensor(member, offset));
    header.tensors.push_back(std::move(tensor));
  }
  return header;
}

}  // namespace

bool begins_as_safetensors(Bytes file) {
  return file.size() > kPrefixSize && static_cast<bool>(header_size(file));
}

Result<SafetensorsHeader> read_safetensors_header(Bytes file) {
  CKPTVERIFY_TRY(const Prelude prelude, parse_prelude(file));
  CKPTVERIFY_TRY(SafetensorsHeader header, parse_header(prelude));
  CKPTVERIFY_TRY_VOID(check_tiling(header.tensors, prelude, file.size()));
  for (SafetensorsTensor& tensor : header.tensors) {
    tensor.begin += prelude.buffer_begin;  // inside of the file: the tiling says so
    tensor.end += prelude.buffer_begin;
  }
  return header;
}

void own_safetensors_header(const SafetensorsHeader& header, std::uint32_t file,
                            Coverage& coverage) {
  const auto own = [&](std::uint64_t begin, std::uint64_t end, Owner owner, std::string label) {
    coverage.own({{file, begin, end - begin}, owner, std::move(label)});
  };
  const std::uint64_t json_end = kPrefixSize + header.json_size;
  own(0, kPrefixSize, Owner::kFraming, "size of the header");
  if (const auto& range = header.metadata_range) {
    own(kPrefixSize, kPrefixSize + range->begin, Owner::kMetadata, "header");
    own(kPrefixSize + range->begin, kPrefixSize + range->end, Owner::kUnverifiable, "__metadata__");
    own(kPrefixSize + range->end, json_end, Owner::kMetadata, "header");
  } else {
    own(kPrefixSize, json_end, Owner::kMetadata, "header");
  }
  own(json_end, header.buffer_begin, Owner::kPadding, "spaces after the header");
}

std::optional<Tensor> safetensors_tensor(const SafetensorsTensor& tensor, std::uint32_t file) {
  const std::uint64_t size = tensor.end - tensor.begin;
  std::vector<std::uint64_t> shape = tensor.shape;
  const bool packed = tensor.type.bits == 4;
  // PyTorch counts pairs of F4 elements, so a row must hold whole pairs.
  if (!tensor.type.dtype || (packed && (shape.empty() || shape.back() % 2 != 0)))
    return std::nullopt;
  if (packed) shape.back() /= 2;
  const Run run{.file = file, .offset = tensor.begin, .stored_size = size, .size = size};
  return contiguous_tensor(*tensor.type.dtype, std::move(shape), run);
}

}  // namespace ckptverify
