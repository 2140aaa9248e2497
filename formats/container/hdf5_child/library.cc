// Types, attributes and texts through the HDF5 library.
#include "formats/container/hdf5_child/library.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ckptverify::hdf5_child {
namespace {

constexpr hsize_t kAttributeElementsMax = 4096;      // Keras lists its layers in attributes
constexpr std::size_t kAttributeBytesMax = 1 << 20;  // a model's configuration as JSON
constexpr std::size_t kTextBytesMax = 1 << 20;
constexpr hsize_t kAttributesMax = 4096;
constexpr std::size_t kNameBytesMax = 4096;

herr_t keep_description(unsigned, const H5E_error2_t* error, void* text) noexcept {
  if (error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

const char* order_name(hid_t type) {
  switch (H5Tget_order(type)) {
    case H5T_ORDER_LE:
      return "little";
    case H5T_ORDER_BE:
      return "big";
    default:
      return "none";
  }
}

/// Whole bytes, no padding bits: the only integers and floats that are tensors.
bool fills_its_bytes(hid_t type) {
  return H5Tget_offset(type) == 0 && H5Tget_precision(type) == 8 * H5Tget_size(type);
}

void describe_float(hid_t type, Json& out) {
  std::size_t sign = 0, exponent_at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
  const bool standard =
      fills_its_bytes(type) &&
      H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) >= 0 &&
      H5Tget_norm(type) == H5T_NORM_IMPLIED && mantissa_at == 0 && exponent_at == mantissa &&
      sign + 1 == 8 * H5Tget_size(type);
  out.set("class", standard ? "float" : "odd float");
  out.set("exponent", std::uint64_t{exponent});
  out.set("mantissa", std::uint64_t{mantissa});
  out.set("bias", std::uint64_t{H5Tget_ebias(type)});
}

std::string member_name(hid_t type, unsigned index) {
  char* name = H5Tget_member_name(type, index);
  std::string copy = name == nullptr ? "" : name;
  H5free_memory(name);
  return copy;
}

/// h5py's bool: an enumeration of one byte, FALSE = 0 and TRUE = 1.
bool is_bool_enumeration(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  for (unsigned index = 0; index < 2; ++index) {
    unsigned char value = 0xff;
    if (H5Tget_member_value(type, index, &value) < 0 || value > 1) return false;
    if (member_name(type, index) != (value == 0 ? "FALSE" : "TRUE")) return false;
  }
  return true;
}

/// h5py's complex: a compound of two equal floats, "r" and "i", without padding.
void describe_compound(hid_t type, Json& out) {
  if (H5Tget_nmembers(type) != 2 || member_name(type, 0) != "r" || member_name(type, 1) != "i") {
    out.set("class", "compound");
    return;
  }
  const Identifier real(H5Tget_member_type(type, 0), H5Tclose);
  const Identifier imaginary(H5Tget_member_type(type, 1), H5Tclose);
  const bool pair = real && imaginary && H5Tequal(real.get(), imaginary.get()) > 0 &&
                    H5Tget_class(real.get()) == H5T_FLOAT && H5Tget_member_offset(type, 0) == 0 &&
                    H5Tget_member_offset(type, 1) == H5Tget_size(real.get()) &&
                    H5Tget_size(type) == 2 * H5Tget_size(real.get());
  Json part = Json(Json::Object{});
  if (pair) describe_float(real.get(), part);
  const bool complex = pair && *part.find("class")->string() == "float";
  out.set("class", complex ? "complex" : "compound");
  if (!complex) return;
  out.set("order", order_name(real.get()));
  for (const char* key : {"exponent", "mantissa", "bias"}) out.set(key, *part.find(key));
}

struct StringRead {
  hid_t object;
  hid_t type;
  std::size_t count;
  bool attribute;
};

herr_t read_raw(const StringRead& what, hid_t memory_type, void* buffer) {
  return what.attribute ? H5Aread(what.object, memory_type, buffer)
                        : H5Dread(what.object, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
}

std::optional<std::vector<std::string>> read_variable_strings(const StringRead& what, hid_t space) {
  const Identifier memory(H5Tcopy(what.type), H5Tclose);
  std::vector<char*> pointers(what.count, nullptr);
  if (read_raw(what, memory.get(), pointers.data()) < 0) return std::nullopt;
  std::vector<std::string> texts;
  std::size_t total = 0;
  for (const char* text : pointers) {
    texts.emplace_back(text == nullptr ? "" : text);
    total += texts.back().size();
  }
  H5Dvlen_reclaim(memory.get(), space, H5P_DEFAULT, pointers.data());
  if (total > kTextBytesMax) return std::nullopt;
  return texts;
}

std::optional<std::vector<std::string>> read_fixed_strings(const StringRead& what) {
  const std::size_t width = H5Tget_size(what.type);
  if (width == 0 || width > kTextBytesMax / what.count) return std::nullopt;
  std::vector<char> buffer(width * what.count);
  if (read_raw(what, what.type, buffer.data()) < 0) return std::nullopt;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < what.count; ++i) {
    std::string text(buffer.data() + i * width, width);
    if (H5Tget_strpad(what.type) == H5T_STR_SPACEPAD)
      text.erase(text.find_last_not_of(' ') + 1);
    else
      text = text.c_str();  // up to the first NUL
    texts.push_back(std::move(text));
  }
  return texts;
}

std::optional<std::vector<std::string>> read_strings(const StringRead& what, hid_t space) {
  if (what.count == 0) return std::vector<std::string>{};
  auto texts = H5Tis_variable_str(what.type) > 0 ? read_variable_strings(what, space)
                                                 : read_fixed_strings(what);
  if (!texts) return std::nullopt;
  for (const std::string& text : *texts)
    if (!is_utf8(text)) return std::nullopt;
  return texts;
}

template <class Number>
std::optional<Json::Array> read_numbers(hid_t attribute, hid_t memory_type, std::size_t count) {
  std::vector<Number> numbers(count);
  if (count > 0 && H5Aread(attribute, memory_type, numbers.data()) < 0) return std::nullopt;
  return Json::Array(numbers.begin(), numbers.end());
}

/// The values of an attribute whose number of elements is known to be small.
std::optional<Json::Array> read_values(hid_t attribute, hid_t type, hid_t space, std::size_t count,
                                       std::string& kind) {
  switch (H5Tget_class(type)) {
    case H5T_STRING: {
      kind = "string";
      const auto texts = read_strings({attribute, type, count, true}, space);
      if (!texts) return std::nullopt;
      return Json::Array(texts->begin(), texts->end());
    }
    case H5T_INTEGER:
      kind = "int";
      if (H5Tget_size(type) > 8) return std::nullopt;
      if (H5Tget_sign(type) == H5T_SGN_NONE)
        return read_numbers<std::uint64_t>(attribute, H5T_NATIVE_UINT64, count);
      return read_numbers<std::int64_t>(attribute, H5T_NATIVE_INT64, count);
    case H5T_FLOAT:
      kind = "float";
      if (H5Tget_size(type) > 8) return std::nullopt;
      return read_numbers<double>(attribute, H5T_NATIVE_DOUBLE, count);
    case H5T_ENUM: {
      kind = "bool";
      if (!is_bool_enumeration(type)) return std::nullopt;
      std::vector<unsigned char> bytes(count);
      if (count > 0 && H5Aread(attribute, type, bytes.data()) < 0) return std::nullopt;
      Json::Array values;
      for (const unsigned char byte : bytes) values.emplace_back(byte != 0);
      return values;
    }
    default:
      return std::nullopt;
  }
}

Json describe_attribute(hid_t attribute) {
  std::vector<char> name(kNameBytesMax + 1, '\0');
  Json out = Json(Json::Object{});
  const auto size = H5Aget_name(attribute, name.size(), name.data());
  const std::string text = name.data();
  const bool named = size >= 0 && static_cast<std::size_t>(size) == text.size() && is_utf8(text);
  out.set("name", named ? text : std::string("?"));
  const Identifier type(H5Aget_type(attribute), H5Tclose);
  const Identifier space(H5Aget_space(attribute), H5Sclose);
  const int rank = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
  const hssize_t count = space ? H5Sget_simple_extent_npoints(space.get()) : -1;
  std::string kind;
  std::optional<Json::Array> values;
  if (named && type && (rank == 0 || rank == 1) && count >= 0 &&
      H5Sget_simple_extent_type(space.get()) != H5S_NULL &&
      static_cast<hsize_t>(count) <= kAttributeElementsMax &&
      H5Aget_storage_size(attribute) <= kAttributeBytesMax)
    values = read_values(attribute, type.get(), space.get(), static_cast<std::size_t>(count), kind);
  if (!values) {
    out.set("unread", named ? "its type or size is not one that is read" : "its name is not UTF-8");
    return out;
  }
  out.set("kind", kind);
  out.set("scalar", rank == 0);
  out.set("values", std::move(*values));
  return out;
}

}  // namespace

std::string library_error() {
  std::string text = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_description, &text);
  return is_utf8(text) ? text : "no reason given";
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(i);
    const std::size_t extra = lead < 0x80   ? 0U
                              : lead < 0xc2 ? 4U
                              : lead < 0xe0 ? 1U
                              : lead < 0xf0 ? 2U
                              : lead < 0xf5 ? 3U
                                            : 4U;
    if (extra == 4 || i + extra >= text.size()) return false;
    for (std::size_t k = 1; k <= extra; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    // Overlong forms, surrogates, and what lies beyond U+10FFFF.
    if ((lead == 0xe0 && byte(i + 1) < 0xa0) || (lead == 0xed && byte(i + 1) > 0x9f) ||
        (lead == 0xf0 && byte(i + 1) < 0x90) || (lead == 0xf4 && byte(i + 1) > 0x8f))
      return false;
    i += extra + 1;
  }
  return true;
}

std::string hexadecimal(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

Json describe_type(hid_t type) {
  Json out = Json(Json::Object{});
  out.set("size", std::uint64_t{H5Tget_size(type)});
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      out.set("class", !fills_its_bytes(type)              ? "odd integer"
                       : H5Tget_sign(type) == H5T_SGN_NONE ? "unsigned"
                                                           : "signed");
      out.set("order", order_name(type));
      return out;
    case H5T_FLOAT:
      describe_float(type, out);
      out.set("order", order_name(type));
      return out;
    case H5T_OPAQUE:
      out.set("class", "opaque");
      return out;
    case H5T_ENUM:
      out.set("class", is_bool_enumeration(type) ? "bool" : "enumeration");
      return out;
    case H5T_STRING:
      out.set("class", "string");
      return out;
    case H5T_COMPOUND:
      describe_compound(type, out);
      return out;
    default:
      out.set("class", "another type");
      return out;
  }
}

Json describe_attributes(hid_t object) {
  Json::Array attributes;
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0) return attributes;
  for (hsize_t i = 0; i < info.num_attrs && i < kAttributesMax; ++i) {
    const Identifier attribute(
        H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    if (attribute) {
      attributes.push_back(describe_attribute(attribute.get()));
      continue;
    }
    Json lost = Json(Json::Object{});
    lost.set("name", "attribute " + std::to_string(i));
    lost.set("unread", library_error());
    attributes.push_back(std::move(lost));
  }
  return attributes;
}

std::optional<std::string> scalar_text(hid_t dataset, hid_t type, hid_t space) {
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_type(space) != H5S_SCALAR)
    return std::nullopt;
  const auto texts = read_strings({dataset, type, 1, false}, space);
  if (!texts) return std::nullopt;
  return texts->front();
}

}  // namespace ckptverify::hdf5_child
