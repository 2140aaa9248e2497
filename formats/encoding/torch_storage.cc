// Storages and dtypes by name. Source: torch/storage.py, c10/core/ScalarType.h.
#include <array>
#include <utility>

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/torch_tensor.h"

namespace ckptverify {
namespace {

struct StorageRow {
  std::string_view name;  // without "Storage"
  DType dtype;
};

constexpr std::array kStorages = {
    StorageRow{"Double", DType::kFloat64},
    StorageRow{"Float", DType::kFloat32},
    StorageRow{"Half", DType::kFloat16},
    StorageRow{"BFloat16", DType::kBfloat16},
    StorageRow{"Long", DType::kInt64},
    StorageRow{"Int", DType::kInt32},
    StorageRow{"Short", DType::kInt16},
    StorageRow{"Char", DType::kInt8},
    StorageRow{"Byte", DType::kUint8},
    StorageRow{"Bool", DType::kBool},
    StorageRow{"UInt16", DType::kUint16},
    StorageRow{"UInt32", DType::kUint32},
    StorageRow{"UInt64", DType::kUint64},
    StorageRow{"ComplexDouble", DType::kComplex128},
    StorageRow{"ComplexFloat", DType::kComplex64},
    StorageRow{"ComplexHalf", DType::kComplex32},
    StorageRow{"QInt8", DType::kQint8},
    StorageRow{"QUInt8", DType::kQuint8},
    StorageRow{"QInt32", DType::kQint32},
    StorageRow{"QUInt4x2", DType::kQuint4x2},
    StorageRow{"QUInt2x4", DType::kQuint2x4},
    StorageRow{"Float8_e5m2", DType::kFloat8E5m2},
    StorageRow{"Float8_e4m3fn", DType::kFloat8E4m3fn},
    StorageRow{"Float8_e5m2fnuz", DType::kFloat8E5m2fnuz},
    StorageRow{"Float8_e4m3fnuz", DType::kFloat8E4m3fnuz},
    StorageRow{"Float8_e8m0fnu", DType::kFloat8E8m0fnu},
    StorageRow{"Float4_e2m1fn_x2", DType::kFloat4E2m1fnX2},
    StorageRow{"Int1", DType::kInt1},
    StorageRow{"Int2", DType::kInt2},
    StorageRow{"Int3", DType::kInt3},
    StorageRow{"Int4", DType::kInt4},
    StorageRow{"Int5", DType::kInt5},
    StorageRow{"Int6", DType::kInt6},
    StorageRow{"Int7", DType::kInt7},
    StorageRow{"UInt1", DType::kUint1},
    StorageRow{"UInt2", DType::kUint2},
    StorageRow{"UInt3", DType::kUint3},
    StorageRow{"UInt4", DType::kUint4},
    StorageRow{"UInt5", DType::kUint5},
    StorageRow{"UInt6", DType::kUint6},
    StorageRow{"UInt7", DType::kUint7},
    StorageRow{"Bits8", DType::kBits8},
    StorageRow{"Bits16", DType::kBits16},
    StorageRow{"Bits1x8", DType::kBits1x8},
    StorageRow{"Bits2x4", DType::kBits2x4},
    StorageRow{"Bits4x2", DType::kBits4x2},
};

Error fault(const PickleNode& node, CauseKind cause, std::string message) {
  return {.message = std::move(message), .offset = node.offset, .cause = Cause{cause}};
}

/// Text, also where Python 2 wrote it as bytes.
std::optional<std::string> text_of(const PickleNode& node) {
  if (const auto text = node.string()) return std::string(*text);
  if (const auto bytes = node.bytes()) return std::string(as_text(*bytes));
  return std::nullopt;
}

}  // namespace

Result<std::uint64_t> natural_of(const PickleNode& node) {
  const auto value = node.integer();
  if (!value || *value < 0) {
    return fault(node, CauseKind::kLayout,
                 "a tensor's size, stride or offset is no natural number; found " +
                     value_text(node.value()));
  }
  return static_cast<std::uint64_t>(*value);
}

Result<std::optional<DType>> storage_dtype(std::string_view class_name) {
  if (const auto dot = class_name.rfind('.'); dot != std::string_view::npos) {
    class_name.remove_prefix(dot + 1);
  }
  for (const std::string_view untyped :
       {"UntypedStorage", "_UntypedStorage", "TypedStorage", "_TypedStorage"}) {
    if (class_name == untyped) return std::optional<DType>();
  }
  for (const StorageRow& row : kStorages) {
    if (class_name.starts_with(row.name) && class_name.substr(row.name.size()) == "Storage") {
      return std::optional(row.dtype);
    }
  }
  return Error{.message = "a storage of an unknown class; found " + std::string(class_name),
               .cause = Cause{CauseKind::kTensorRep}};
}

std::optional<DType> torch_dtype(std::string_view name) {
  if (!name.starts_with("torch.")) return std::nullopt;
  return dtype_named(name.substr(6));
}

bool is_storage(const PickleNode& node) {
  if (node.kind != PickleKind::kPersistent) return false;
  const PickleNode& id = *node.items()[0];
  return id.kind == PickleKind::kTuple && id.items().size() >= 5 &&
         text_of(*id.items()[0]) == "storage";
}

/// (key, first element, count): elements of the storage that the persistent id names.
static Result<StorageView> storage_view(const PickleNode& node, const StorageReference& whole) {
  const PickleItems parts = node.items();
  const auto key = parts.size() == 3 ? text_of(*parts[0]) : std::nullopt;
  if (!key) return fault(node, CauseKind::kBitrot, "a storage's view is no triple");
  CKPTVERIFY_TRY(const auto first, natural_of(*parts[1]));
  CKPTVERIFY_TRY(const auto count, natural_of(*parts[2]));
  const auto end = checked_add(first, count);
  if (!end || *end > whole.element_count) {
    return fault(node, CauseKind::kLayout,
                 "a view leaves its storage; found an end of " +
                     std::to_string(end ? *end : UINT64_MAX) + ", expected at most " +
                     std::to_string(whole.element_count));
  }
  return StorageView{.key = *key, .first_element = first, .element_count = count};
}

Result<StorageReference> storage_reference(const PickleNode& node) {
  if (!is_storage(node)) {
    return fault(node, CauseKind::kBitrot, "no storage where a tensor needs one");
  }
  const PickleItems id = node.items()[0]->items();
  const auto key = text_of(*id[2]);
  const auto location = text_of(*id[3]);
  if (id[1]->kind != PickleKind::kGlobal || !key || !location) {
    return fault(node, CauseKind::kBitrot, "a storage's class, key or location is none");
  }
  auto dtype = storage_dtype(id[1]->name());
  if (!dtype) return fault(node, CauseKind::kTensorRep, dtype.error().message);
  CKPTVERIFY_TRY(const auto count, natural_of(*id[4]));
  auto size = checked_multiply(count, *dtype ? dtype_size(**dtype) : 1);
  if (!size) return fault(node, CauseKind::kLayout, size.error().message);
  StorageReference reference{.key = *key,
                             .location = *location,
                             .dtype = *dtype,
                             .element_count = count,
                             .size = *size,
                             .offset = node.offset};
  if (id.size() > 5 && !id[5]->is_none()) {
    CKPTVERIFY_TRY(reference.view, storage_view(*id[5], reference));
  }
  return reference;
}

Result<std::vector<std::uint64_t>> dimensions_of(const PickleNode& node) {
  const PickleNode* list = &node;
  if (callee(node) == "torch.Size") {
    list = argument(node, 0);
    if (list == nullptr) return std::vector<std::uint64_t>();
  }
  if (list->kind != PickleKind::kTuple && list->kind != PickleKind::kList) {
    return fault(node, CauseKind::kBitrot, "a tensor's size or stride is no tuple");
  }
  std::vector<std::uint64_t> dimensions;
  for (const PickleNode* item : list->items()) {
    CKPTVERIFY_TRY(const auto dimension, natural_of(*item));
    dimensions.push_back(dimension);
  }
  return dimensions;
}

}  // namespace ckptverify
