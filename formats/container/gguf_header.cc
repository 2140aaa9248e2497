// Read front to back; each count is compared with what the rest of the file can hold before
// anything is kept for it.
#include "formats/container/gguf_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <set>
#include <utility>

#include "formats/encoding/pickle_text.h"

namespace ckptverify {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kVersionMin = 2;  // version 1 has 32-bit counts
constexpr std::uint32_t kVersionMax = 3;
constexpr std::uint32_t kRankMax = 4;                // GGML_MAX_DIMS
constexpr std::uint64_t kKeyBytesMax = 65'535;       // the specification's
constexpr std::uint64_t kAlignmentMax = 1ULL << 20;  // a page of any system is less
constexpr unsigned kNestingMax = 8;                  // arrays of arrays; none seen in the field
constexpr std::string_view kAlignmentKey = "general.alignment";

using enum DType;

constexpr std::array kTypes = {
    GgufType{0, "F32", 1, 4, kFloat32},   GgufType{1, "F16", 1, 2, kFloat16},
    GgufType{2, "Q4_0", 32, 18, {}},      GgufType{3, "Q4_1", 32, 20, {}},
    GgufType{6, "Q5_0", 32, 22, {}},      GgufType{7, "Q5_1", 32, 24, {}},
    GgufType{8, "Q8_0", 32, 34, {}},      GgufType{10, "Q2_K", 256, 84, {}},
    GgufType{11, "Q3_K", 256, 110, {}},   GgufType{12, "Q4_K", 256, 144, {}},
    GgufType{13, "Q5_K", 256, 176, {}},   GgufType{14, "Q6_K", 256, 210, {}},
    GgufType{15, "Q8_K", 256, 292, {}},   GgufType{16, "IQ2_XXS", 256, 66, {}},
    GgufType{17, "IQ2_XS", 256, 74, {}},  GgufType{18, "IQ3_XXS", 256, 98, {}},
    GgufType{19, "IQ1_S", 256, 50, {}},   GgufType{20, "IQ4_NL", 32, 18, {}},
    GgufType{21, "IQ3_S", 256, 110, {}},  GgufType{22, "IQ2_S", 256, 82, {}},
    GgufType{23, "IQ4_XS", 256, 136, {}}, GgufType{24, "I8", 1, 1, kInt8},
    GgufType{25, "I16", 1, 2, kInt16},    GgufType{26, "I32", 1, 4, kInt32},
    GgufType{27, "I64", 1, 8, kInt64},    GgufType{28, "F64", 1, 8, kFloat64},
    GgufType{29, "IQ1_M", 256, 56, {}},   GgufType{30, "BF16", 1, 2, kBfloat16},
    GgufType{34, "TQ1_0", 256, 54, {}},   GgufType{35, "TQ2_0", 256, 66, {}},
    GgufType{39, "MXFP4", 32, 17, {}},    GgufType{40, "NVFP4", 64, 36, {}},
    GgufType{41, "Q1_0", 128, 18, {}},
};

// gguf_metadata_value_type.
enum ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kTruth = 7,
  kText = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// The least bytes that a value of the type takes; 0 for a type that is not known.
std::uint64_t value_size(std::uint32_t type) {
  constexpr std::array<std::uint64_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
  return type < kSizes.size() ? kSizes[type] : 0;
}

DType element_type(std::uint32_t type) {
  constexpr std::array kElements = {kUint8, kInt8, kUint16, kInt16,  kUint32, kInt32,  kFloat32,
                                    kBool,  kBool, kBool,   kUint64, kInt64,  kFloat64};
  return kElements[type];
}

Value integer_value(std::uint64_t bits, std::uint64_t size, bool is_signed) {
  std::array<std::byte, 9> bytes{};
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(bits >> (8 * i) & 0xff);
  // Two's complement of one byte more than an unsigned number fills.
  return integer_of_bytes(Bytes(bytes).first(is_signed ? size : size + 1));
}

class Parser {
 public:
  Parser(Bytes file, ByteOrder order) : reader_(file), order_(order) {}
  Result<GgufHeader> run(std::uint32_t version);

 private:
  Error fault(std::uint64_t offset, std::string message, CauseKind cause = CauseKind::kBitrot) {
    return {.message = std::move(message), .offset = offset, .cause = Cause{cause, {}}};
  }
  /// All numbers of the file in its own order.
  Result<std::uint64_t> number(std::uint64_t size) {
    CKPTVERIFY_TRY(const Bytes bytes, take(size));
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(order_ == ByteOrder::kLittle ? size - 1 - i : i);
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[at]);
    }
    return value;
  }
  Result<std::uint32_t> number32() {
    CKPTVERIFY_TRY(const std::uint64_t value, number(4));
    return static_cast<std::uint32_t>(value);
  }
  Result<Bytes> take(std::uint64_t size) {
    auto bytes = reader_.take(size);
    if (!bytes)
      return fault(reader_.offset(),
                   "file ends inside its header; found " + std::to_string(reader_.remaining()) +
                       " bytes, expected " + std::to_string(size),
                   CauseKind::kTrunc);
    return bytes;
  }
  /// A count of things of at least `size` bytes each.
  Result<std::uint64_t> count(std::string_view what, std::uint64_t size);
  Result<std::string> text(std::string_view what);
  Result<void> value(const std::string& path, std::uint32_t type, unsigned depth);
  Result<void> array(const std::string& path, unsigned depth);
  Result<void> numbers(const std::string& path, std::uint32_t type, std::uint64_t count);
  Result<Value> scalar(std::uint32_t type);
  Result<void> pair(std::set<std::string>& keys);
  Result<GgufTensor> tensor();
  Result<void> alignment();

  ByteReader reader_;
  ByteOrder order_;
  GgufHeader header_;
};

Result<std::uint64_t> Parser::count(std::string_view what, std::uint64_t size) {
  const std::uint64_t at = reader_.offset();
  CKPTVERIFY_TRY(const std::uint64_t count, number(8));
  if (count > reader_.remaining() / size)
    return fault(at,
                 "more " + std::string(what) + " than the rest of the file can hold; found " +
                     std::to_string(count) + ", expected at most " +
                     std::to_string(reader_.remaining() / size),
                 CauseKind::kTrunc);
  return count;
}

Result<std::string> Parser::text(std::string_view what) {
  CKPTVERIFY_TRY(const std::uint64_t size, count(what, 1));
  const std::uint64_t at = reader_.offset();
  CKPTVERIFY_TRY(const Bytes bytes, take(size));
  const std::string_view text = as_text(bytes);
  if (!is_utf8(text, Surrogates::kRefused))
    return fault(at, std::string(what) + " are no UTF-8; found " + std::to_string(size) + " bytes");
  return std::string(text);
}

Result<Value> Parser::scalar(std::uint32_t type) {
  const std::uint64_t at = reader_.offset();
  CKPTVERIFY_TRY(const std::uint64_t bits, number(value_size(type)));
  switch (type) {
    case kTruth:
      if (bits > 1)
        return fault(
            at, "a truth value is neither; found " + std::to_string(bits) + ", expected 0 or 1");
      return Value(bits == 1);
    case kF32:
      return Value(double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))});
    case kF64:
      return Value(std::bit_cast<double>(bits));
    case kI8:
    case kI16:
    case kI32:
    case kI64:
      return integer_value(bits, value_size(type), true);
    default:
      return integer_value(bits, value_size(type), false);
  }
}

/// A list of numbers is one tensor: vocabularies have a score and a type for each token.
Result<void> Parser::numbers(const std::string& path, std::uint32_t type, std::uint64_t count) {
  const std::uint64_t size = count * value_size(type);  // fits: the bytes are there
  const Run run{.file = 0, .offset = reader_.offset(), .stored_size = size, .size = size};
  CKPTVERIFY_TRY(const Bytes bytes, take(size));
  if (type == kTruth &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; }))
    return fault(run.offset, "a list of truth values has another; expected 0 or 1");
  Tensor tensor = contiguous_tensor(element_type(type), {count}, run);
  tensor.byte_order = order_;
  header_.metadata.push_back({.path = path, .node = std::move(tensor)});
  return {};
}

Result<void> Parser::array(const std::string& path, unsigned depth) {
  const std::uint64_t at = reader_.offset();
  CKPTVERIFY_TRY(const std::uint32_t type, number32());
  if (value_size(type) == 0)
    return fault(at,
                 "a list of an unknown type; found " + std::to_string(type) + ", expected 0 to 12");
  CKPTVERIFY_TRY(const std::uint64_t items, count("items", value_size(type)));
  if (items == 0) {
    header_.metadata.push_back({.path = path, .node = Value(EmptyList{})});
    return {};
  }
  if (type != kText && type != kArray) return numbers(path, type, items);
  for (std::uint64_t i = 0; i < items; ++i)
    CKPTVERIFY_TRY_VOID(value(path + "." + std::to_string(i), type, depth + 1));
  return {};
}

Result<void> Parser::value(const std::string& path, std::uint32_t type, unsigned depth) {
  if (type == kArray && depth < kNestingMax) return array(path, depth);
  if (type == kArray)
    return fault(reader_.offset(),
                 "lists are nested too deep; expected at most " + std::to_string(kNestingMax));
  if (type == kText) {
    CKPTVERIFY_TRY(std::string string, text("bytes of a string"));
    header_.metadata.push_back({.path = path, .node = Value(std::move(string))});
    return {};
  }
  CKPTVERIFY_TRY(Value scalar_value, scalar(type));
  header_.metadata.push_back({.path = path, .node = std::move(scalar_value)});
  return {};
}

Result<void> Parser::pair(std::set<std::string>& keys) {
  const std::uint64_t at = reader_.offset();
  CKPTVERIFY_TRY(const std::string key, text("bytes of a key"));
  if (key.empty() || key.size() > kKeyBytesMax)
    return fault(at, "a key of the metadata has a wrong size; found " + std::to_string(key.size()) +
                         " bytes, expected 1 to " + std::to_string(kKeyBytesMax));
  if (!keys.insert(key).second)
    return fault(at, "key '" + key + "' is given twice; expected once", CauseKind::kLayout);
  const std::uint64_t type_at = reader_.offset();
  CKPTVERIFY_TRY(const std::uint32_t type, number32());
  if (value_size(type) == 0)
    return fault(type_at, "key '" + key + "': unknown type of value; found " +
                              std::to_string(type) + ", expected 0 to 12");
  return value(key, type, 0);
}

Result<GgufTensor> Parser::tensor() {
  GgufTensor tensor;
  tensor.info_offset = reader_.offset();
  CKPTVERIFY_TRY(tensor.name, text("bytes of a tensor's name"));
  const std::uint64_t rank_at = reader_.offset();
  CKPTVERIFY_TRY(const std::uint32_t rank, number32());
  if (rank > kRankMax)
    return fault(rank_at, "tensor '" + tensor.name + "': too many dimensions; found " +
                              std::to_string(rank) + ", expected at most " +
                              std::to_string(kRankMax));
  for (std::uint32_t d = 0; d < rank; ++d) {
    CKPTVERIFY_TRY(const std::uint64_t dimension, number(8));
    tensor.shape.push_back(dimension);
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  CKPTVERIFY_TRY(tensor.type, number32());
  CKPTVERIFY_TRY(tensor.offset, number(8));
  return tensor;
}

Result<void> Parser::alignment() {
  for (const Entry& entry : header_.metadata) {
    if (entry.path != kAlignmentKey) continue;
    const auto* value = std::get_if<Value>(&entry.node);
    const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (number == nullptr || *number <= 0 || static_cast<std::uint64_t>(*number) > kAlignmentMax ||
        !std::has_single_bit(static_cast<std::uint64_t>(*number)))
      return Error{.message = "general.alignment is none; found " +
                              (value == nullptr ? "a list" : value_text(*value)) +
                              ", expected a power of two up to " + std::to_string(kAlignmentMax),
                   .cause = Cause{CauseKind::kBitrot, {}}};
    header_.alignment = static_cast<std::uint64_t>(*number);
  }
  return {};
}

Result<GgufHeader> Parser::run(std::uint32_t version) {
  constexpr std::uint64_t kMagicAndVersion = 8;
  constexpr std::uint64_t kTensorBytesMin = 24;  // a name's size, rank, type, offset
  constexpr std::uint64_t kPairBytesMin = 13;    // a key's size, type, one byte
  CKPTVERIFY_TRY_VOID(take(kMagicAndVersion));
  header_.byte_order = order_;
  header_.version = version;
  CKPTVERIFY_TRY(const std::uint64_t tensors, count("tensors", kTensorBytesMin));
  CKPTVERIFY_TRY(const std::uint64_t pairs, count("metadata pairs", kPairBytesMin));
  std::set<std::string> keys;
  for (std::uint64_t i = 0; i < pairs; ++i) CKPTVERIFY_TRY_VOID(pair(keys));
  CKPTVERIFY_TRY_VOID(alignment());
  for (std::uint64_t i = 0; i < tensors; ++i) {
    CKPTVERIFY_TRY(GgufTensor one, tensor());
    header_.tensors.push_back(std::move(one));
  }
  header_.end = reader_.offset();
  return std::move(header_);
}

}  // namespace

const GgufType* gguf_type(std::uint32_t id) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                [id](const GgufType& type) { return type.id == id; });
  return row == kTypes.end() ? nullptr : &*row;
}

bool has_gguf_magic(Bytes file) {
  return as_text(file.first(std::min(file.size(), kMagic.size()))) == kMagic;
}

Result<GgufHeader> parse_gguf_header(Bytes file) {
  if (!has_gguf_magic(file))
    return Error{
        .message = "does not begin as a GGUF file; expected 'GGUF'",
        .offset = 0,
        .cause = Cause{file.size() < kMagic.size() ? CauseKind::kTrunc : CauseKind::kBitrot, {}}};
  ByteReader reader(file);
  CKPTVERIFY_TRY_VOID(reader.seek(kMagic.size()));
  auto version = reader.u32();
  if (!version)
    return Error{.message = "file ends before its version; found " + std::to_string(file.size()) +
                            " bytes, expected at least 8",
                 .offset = file.size(),
                 .cause = Cause{CauseKind::kTrunc, {}}};
  // A version is a small number, so its byte order shows.
  ByteOrder order = ByteOrder::kLittle;
  if ((*version & 0xffff) == 0 && *version != 0) {
    order = ByteOrder::kBig;
    *version = *version >> 24 | (*version >> 8 & 0xff00);
  }
  if (*version < kVersionMin || *version > kVersionMax)
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "a version of GGUF that is not read; found " +
                            std::to_string(*version) + ", expected 2 or 3",
                 .offset = kMagic.size()};
  return Parser(file, order).run(*version);
}

}  // namespace ckptverify
