// The child's lines to a listing. A line that says something impossible ends the reading: the child
// itself may have been led astray by the file.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "ckptverify/json.h"
#include "formats/container/hdf5_probe.h"

namespace ckptverify {
namespace {

constexpr std::size_t kRankMax = 32;  // H5S_MAX_RANK

Error damaged(std::string message) {
  return Error{.message = std::move(message), .cause = Cause{CauseKind::kBitrot, {}}};
}

/// One line, read field by field; the first impossible field stays as the error.
class Line {
 public:
  Line(const Json& json, std::uint64_t file_size) : json_(json), file_size_(file_size) {}

  std::string path() const {
    std::string joined;
    const Json* parts = json_.find("path");
    if (parts == nullptr || parts->array() == nullptr) return joined;
    for (const Json& part : *parts->array())
      if (part.string() != nullptr) joined += (joined.empty() ? "" : ".") + *part.string();
    return joined;
  }
  std::string string(std::string_view key) const {
    const Json* value = json_.find(key);
    return value != nullptr && value->string() != nullptr ? *value->string() : "";
  }
  const Json* find(std::string_view key) const { return json_.find(key); }

  Error impossible(std::string_view key, const std::string& found,
                   const std::string& expected) const {
    return damaged("dataset '" + path() + "': impossible " + std::string(key) + "; found " + found +
                   ", expected " + expected);
  }
  Result<std::uint64_t> number(std::string_view key) const {
    const Json* value = json_.find(key);
    const auto number = value == nullptr ? std::nullopt : value->unsigned_integer();
    if (!number) return impossible(key, value == nullptr ? "nothing" : value->text(), "an integer");
    return *number;
  }
  Result<std::vector<std::uint64_t>> numbers(std::string_view key) const {
    const Json* list = json_.find(key);
    std::vector<std::uint64_t> numbers;
    if (list == nullptr || list->array() == nullptr)
      return impossible(key, "nothing", "a list of integers");
    for (const Json& item : *list->array()) {
      const auto number = item.unsigned_integer();
      if (!number) return impossible(key, item.text(), "an integer");
      numbers.push_back(*number);
    }
    return numbers;
  }
  Result<Hdf5Extent> extent(std::uint64_t offset, std::uint64_t size) const {
    if (offset > file_size_ || size > file_size_ - offset)
      return impossible("place", std::to_string(size) + " bytes at byte " + std::to_string(offset),
                        "a place inside the file's " + std::to_string(file_size_) + " bytes");
    return Hdf5Extent{offset, size};
  }

 private:
  const Json& json_;
  std::uint64_t file_size_;
};

std::optional<std::vector<std::byte>> bytes_of_hexadecimal(std::string_view text) {
  const auto nibble = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = nibble(text[i]);
    const int low = nibble(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

Result<Hdf5Type> parse_type(const Line& line) {
  struct Class {
    std::string_view name;
    Hdf5Class kind;
  };
  constexpr std::array kClasses = {
      Class{"signed", Hdf5Class::kSigned}, Class{"unsigned", Hdf5Class::kUnsigned},
      Class{"float", Hdf5Class::kFloat},   Class{"complex", Hdf5Class::kComplex},
      Class{"bool", Hdf5Class::kBool},     Class{"opaque", Hdf5Class::kOpaque},
      Class{"string", Hdf5Class::kString},
  };
  Hdf5Type type;
  type.name = line.string("class");
  const auto row = std::find_if(kClasses.begin(), kClasses.end(),
                                [&](const Class& known) { return known.name == type.name; });
  if (row != kClasses.end()) type.kind = row->kind;
  CKPTVERIFY_TRY(type.size, line.number("size"));
  if (line.string("order") == "big") type.order = ByteOrder::kBig;
  if (type.kind != Hdf5Class::kFloat && type.kind != Hdf5Class::kComplex) return type;
  CKPTVERIFY_TRY(type.exponent, line.number("exponent"));
  CKPTVERIFY_TRY(type.mantissa, line.number("mantissa"));
  CKPTVERIFY_TRY(type.bias, line.number("bias"));
  return type;
}

std::optional<Value> parse_value(const Json& json, std::string_view kind) {
  if (kind == "string" && json.string() != nullptr) return Value(*json.string());
  if (kind == "bool" && json.boolean() != nullptr) return Value(*json.boolean());
  if (kind == "float" && json.number()) return Value(*json.number());
  if (kind != "int") return std::nullopt;
  if (const auto integer = json.integer()) return Value(*integer);
  const auto large = json.unsigned_integer();
  if (!large) return std::nullopt;
  BigInteger big;
  for (int shift = 56; shift >= 0; shift -= 8)
    big.magnitude.push_back(static_cast<std::byte>(*large >> shift & 0xff));
  return Value(std::move(big));
}

std::vector<Hdf5Attribute> parse_attributes(const Line& line) {
  std::vector<Hdf5Attribute> attributes;
  const Json* list = line.find("attributes");
  if (list == nullptr || list->array() == nullptr) return attributes;
  for (const Json& item : *list->array()) {
    const Line fields(item, 0);
    Hdf5Attribute attribute;
    attribute.name = fields.string("name");
    const Json* scalar = item.find("scalar");
    attribute.scalar = scalar != nullptr && scalar->boolean() != nullptr && *scalar->boolean();
    const Json* values = item.find("values");
    if (values != nullptr && values->array() != nullptr) {
      attribute.values.emplace();
      for (const Json& json : *values->array()) {
        auto value = parse_value(json, fields.string("kind"));
        if (!value) break;
        attribute.values->push_back(std::move(*value));
      }
      if (attribute.values->size() != values->array()->size()) attribute.values.reset();
    }
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

Result<void> parse_chunks(const Line& line, Hdf5Dataset& dataset) {
  CKPTVERIFY_TRY(dataset.chunk_shape, line.numbers("chunk"));
  if (dataset.chunk_shape.size() != dataset.shape.size())
    return line.impossible("chunk", std::to_string(dataset.chunk_shape.size()) + " dimensions",
                           std::to_string(dataset.shape.size()));
  if (std::find(dataset.chunk_shape.begin(), dataset.chunk_shape.end(), 0U) !=
      dataset.chunk_shape.end())
    return line.impossible("chunk", "an empty one", "at least one element");
  CKPTVERIFY_TRY(const auto filters, line.numbers("filters"));
  for (const std::uint64_t id : filters) {
    if (id > UINT32_MAX) return line.impossible("filter", std::to_string(id), "32 bits");
    dataset.filters.push_back(static_cast<std::uint32_t>(id));
  }
  if (line.find("shuffle") != nullptr) {
    CKPTVERIFY_TRY(dataset.shuffle_size, line.number("shuffle"));
  }
  const Json* rows = line.find("chunks");
  if (rows == nullptr || rows->array() == nullptr) return {};
  for (const Json& row : *rows->array()) {
    constexpr std::size_t kFixed = 3;  // address, size, mask
    std::vector<std::uint64_t> numbers;
    for (const Json& item : row.array() == nullptr ? Json::Array{} : *row.array())
      numbers.push_back(item.unsigned_integer().value_or(UINT64_MAX));
    if (numbers.size() != kFixed + dataset.shape.size() || numbers[2] > UINT32_MAX)
      return line.impossible("chunk", row.text(), "an address, a size, a mask and a place");
    CKPTVERIFY_TRY(const Hdf5Extent stored, line.extent(numbers[0], numbers[1]));
    dataset.chunks.push_back({.offset = {numbers.begin() + kFixed, numbers.end()},
                              .stored = stored,
                              .filter_mask = static_cast<std::uint32_t>(numbers[2])});
  }
  return {};
}

Result<void> parse_layout(const Line& line, Hdf5Dataset& dataset) {
  const std::string layout = line.string("layout");
  if (const auto fill = bytes_of_hexadecimal(line.string("fill"))) dataset.fill = *fill;
  if (layout == "chunked") {
    dataset.layout = Hdf5Layout::kChunked;
    return parse_chunks(line, dataset);
  }
  if (layout == "compact") {
    dataset.layout = Hdf5Layout::kCompact;
    if (line.find("data") != nullptr) dataset.compact = bytes_of_hexadecimal(line.string("data"));
    return {};
  }
  if (layout != "contiguous") {
    dataset.layout = layout == "external"  ? Hdf5Layout::kExternal
                     : layout == "virtual" ? Hdf5Layout::kVirtual
                                           : Hdf5Layout::kDamaged;
    return {};
  }
  if (line.find("offset") == nullptr) return {};
  CKPTVERIFY_TRY(const std::uint64_t offset, line.number("offset"));
  CKPTVERIFY_TRY(const std::uint64_t stored, line.number("stored"));
  CKPTVERIFY_TRY(dataset.contiguous, line.extent(offset, stored));
  return {};
}

Result<Hdf5Dataset> parse_dataset(const Line& line, std::uint64_t file_size) {
  Hdf5Dataset dataset;
  dataset.path = line.path();
  CKPTVERIFY_TRY(dataset.address, line.number("address"));
  const Json* type = line.find("type");
  if (type == nullptr) return line.impossible("type", "nothing", "an object");
  CKPTVERIFY_TRY(dataset.type, parse_type(Line(*type, file_size)));
  CKPTVERIFY_TRY(dataset.shape, line.numbers("dims"));
  if (dataset.shape.size() > kRankMax)
    return line.impossible("shape", std::to_string(dataset.shape.size()) + " dimensions",
                           "at most " + std::to_string(kRankMax));
  CKPTVERIFY_TRY_VOID(parse_layout(line, dataset));
  dataset.attributes = parse_attributes(line);
  if (line.find("text") != nullptr) dataset.text = line.string("text");
  return dataset;
}

Result<void> add_line(const Json& json, std::uint64_t file_size, Hdf5Listing& listing) {
  const Line line(json, file_size);
  const std::string kind = line.string("kind");
  if (kind == "dataset") {
    CKPTVERIFY_TRY(Hdf5Dataset dataset, parse_dataset(line, file_size));
    listing.datasets.push_back(std::move(dataset));
    return {};
  }
  if (kind == "group") {
    listing.groups.push_back({.path = line.path(), .attributes = parse_attributes(line)});
    return {};
  }
  if (kind == "error") return damaged(line.string("what"));
  const Hdf5NoteKind note = kind == "link"      ? Hdf5NoteKind::kLink
                            : kind == "damaged" ? Hdf5NoteKind::kDamaged
                                                : Hdf5NoteKind::kUnread;
  listing.notes.push_back({.kind = note, .path = line.path(), .what = line.string("what")});
  return {};
}

}  // namespace

Result<Hdf5Listing> parse_hdf5_listing(std::string_view lines, std::uint64_t file_size) {
  Hdf5Listing listing;
  std::uint64_t line_count = 0;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;
    const auto json = Json::parse(lines.substr(0, end));
    lines.remove_prefix(end + 1);
    if (!json) return damaged("the HDF5 child wrote a line that is no JSON");
    const Json* kind = json->find("kind");
    if (kind != nullptr && kind->string() != nullptr && *kind->string() == "end") {
      const Json* count = json->find("lines");
      if (count != nullptr && count->unsigned_integer() == line_count && lines.empty())
        return listing;
      break;
    }
    CKPTVERIFY_TRY_VOID(add_line(*json, file_size, listing));
    ++line_count;
  }
  return damaged("the HDF5 child's listing has no end; found " + std::to_string(line_count) +
                 " lines before it stopped");
}

}  // namespace ckptverify
