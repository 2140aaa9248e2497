// One line a dataset. Every number is checked again by the process that reads the lines.
#include "formats/container/hdf5_child/walk.h"

#include <array>
#include <cstdio>
#include <utility>

#include "formats/container/hdf5_child/library.h"

namespace ckptverify::hdf5_child {
namespace {

constexpr std::size_t kDepthMax = 64;            // groups in groups
constexpr std::uint64_t kLinesMax = 1'000'000;   // a state has thousands of tensors
constexpr std::uint64_t kChunksMax = 4'000'000;  // 1 TiB in chunks of 256 KiB
constexpr std::size_t kCompactMax = 64 * 1024;   // the format's own limit
constexpr std::size_t kFillSizeMax = 16;         // complex128

/// The bytes of a compact dataset or of a fill value, which have no place of their own in the file.
void set_bytes(Json& out, const char* key, const std::vector<unsigned char>& bytes) {
  out.set(key, hexadecimal(bytes.data(), bytes.size()));
}

void describe_fill(hid_t properties, hid_t type, Json& out) {
  const std::size_t size = H5Tget_size(type);
  if (size == 0 || size > kFillSizeMax) return;
  std::vector<unsigned char> fill(size, 0);
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  if (H5Pfill_value_defined(properties, &defined) >= 0 && defined == H5D_FILL_VALUE_USER_DEFINED &&
      H5Pget_fill_value(properties, type, fill.data()) < 0)
    return;
  set_bytes(out, "fill", fill);
}

void describe_compact(hid_t dataset, hid_t type, Json& out) {
  const hsize_t size = H5Dget_storage_size(dataset);
  std::vector<unsigned char> bytes(size > kCompactMax ? 0 : size);
  const H5T_class_t kind = H5Tget_class(type);
  const bool plain = kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_OPAQUE ||
                     kind == H5T_ENUM || kind == H5T_COMPOUND;
  if (!plain || bytes.empty() ||
      H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
    return;
  set_bytes(out, "data", bytes);
}

std::vector<hsize_t> extent(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dimensions(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  if (!dimensions.empty()) H5Sget_simple_extent_dims(space, dimensions.data(), nullptr);
  return dimensions;
}

Json::Array numbers(const std::vector<hsize_t>& values) {
  Json::Array array;
  for (const hsize_t value : values) array.emplace_back(std::uint64_t{value});
  return array;
}

}  // namespace

bool Walk::run() {
  const Identifier root(H5Gopen2(file_, "/", H5P_DEFAULT), H5Gclose);
  if (!root) return fail("root group does not open: " + library_error());
  H5O_info_t info;
  if (H5Oget_info2(root.get(), &info, H5O_INFO_BASIC) >= 0) groups_seen_.insert(info.addr);
  return group(root.get());
}

herr_t Walk::collect(hid_t, const char* name, const H5L_info_t* info, void* links) noexcept {
  auto& list = *static_cast<std::vector<Link>*>(links);
  if (list.size() >= kLinesMax) return -1;
  list.push_back({name, info->type});
  return 0;
}

bool Walk::group(hid_t group) {
  if (path_.size() >= kDepthMax)
    return fail("groups are nested too deeply; found more than " + std::to_string(kDepthMax));
  write_attributes(group);
  std::vector<Link> links;
  hsize_t position = 0;
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &position, collect, &links) < 0)
    note("damaged", "group does not list its members: " + library_error());
  for (const Link& member : links)
    if (!link(group, member)) return false;
  return true;
}

bool Walk::link(hid_t group, const Link& link) {
  if (line_count_ >= kLinesMax)
    return fail("too many objects; found more than " + std::to_string(kLinesMax));
  if (!is_utf8(link.name)) {
    note("unread", "name of a link is not UTF-8");
    return true;
  }
  path_.push_back(link.name);
  bool go_on = true;
  if (link.type == H5L_TYPE_HARD)
    go_on = object(group, link.name);
  else
    note("link", link.type == H5L_TYPE_SOFT       ? "soft link"
                 : link.type == H5L_TYPE_EXTERNAL ? "external link"
                                                  : "link of a user's own kind");
  path_.pop_back();
  return go_on;
}

bool Walk::object(hid_t group, const std::string& name) {
  const Identifier opened(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
  H5O_info_t info;
  if (!opened || H5Oget_info2(opened.get(), &info, H5O_INFO_BASIC) < 0) {
    note("damaged", "object does not open: " + library_error());
    return true;
  }
  switch (info.type) {
    case H5O_TYPE_GROUP:
      if (groups_seen_.insert(info.addr).second) return this->group(opened.get());
      note("link", "hard link to a group that has another path");
      return true;
    case H5O_TYPE_DATASET:
      dataset(opened.get(), info.addr);
      return true;
    default:
      note("unread", "object is neither group nor dataset");
      return true;
  }
}

void Walk::dataset(hid_t dataset, haddr_t address) {
  const Identifier type(H5Dget_type(dataset), H5Tclose);
  const Identifier space(H5Dget_space(dataset), H5Sclose);
  if (!type || !space)
    return note("damaged", "dataset has no type or no shape: " + library_error());
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL)
    return note("unread", "dataset has no elements by type (null dataspace)");
  Json out = line("dataset");
  out.set("address", std::uint64_t{address});
  out.set("type", describe_type(type.get()));
  out.set("dims", numbers(extent(space.get())));
  out.set("attributes", describe_attributes(dataset));
  if (const auto text = scalar_text(dataset, type.get(), space.get())) out.set("text", *text);
  layout(dataset, type.get(), space.get(), out);
  write(out);
}

void Walk::layout(hid_t dataset, hid_t type, hid_t space, Json& out) {
  const Identifier properties(H5Dget_create_plist(dataset), H5Pclose);
  const H5D_layout_t kind = properties ? H5Pget_layout(properties.get()) : H5D_LAYOUT_ERROR;
  if (kind == H5D_CONTIGUOUS && H5Pget_external_count(properties.get()) > 0) {
    out.set("layout", "external");
    return;
  }
  if (kind == H5D_CONTIGUOUS || kind == H5D_CHUNKED) describe_fill(properties.get(), type, out);
  switch (kind) {
    case H5D_COMPACT:
      out.set("layout", "compact");
      describe_compact(dataset, type, out);
      return;
    case H5D_CONTIGUOUS: {
      out.set("layout", "contiguous");
      const haddr_t offset = H5Dget_offset(dataset);
      if (offset == HADDR_UNDEF) return;
      out.set("offset", std::uint64_t{offset});
      out.set("stored", std::uint64_t{H5Dget_storage_size(dataset)});
      return;
    }
    case H5D_CHUNKED: {
      const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space));
      std::vector<hsize_t> chunk(rank);
      H5Pget_chunk(properties.get(), static_cast<int>(rank), chunk.data());
      out.set("chunk", numbers(chunk));
      filters(properties.get(), out);
      out.set("layout", chunks(dataset, space, rank, out) ? "chunked" : "damaged");
      return;
    }
    default:
      out.set("layout", kind == H5D_VIRTUAL ? "virtual" : "damaged");
  }
}

void Walk::filters(hid_t properties, Json& out) {
  Json::Array ids;
  const int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0;
    std::array<unsigned, 8> options{};
    std::size_t option_count = options.size();
    const H5Z_filter_t id = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags,
                                           &option_count, options.data(), 0, nullptr, nullptr);
    ids.emplace_back(std::int64_t{id});
    if (id == H5Z_FILTER_SHUFFLE && option_count > 0 && out.find("shuffle") == nullptr)
      out.set("shuffle", std::uint64_t{options[0]});
  }
  out.set("filters", std::move(ids));
}

bool Walk::chunks(hid_t dataset, hid_t space, std::size_t rank, Json& out) {
  hsize_t count = 0;
  if (H5Dget_num_chunks(dataset, space, &count) < 0) return false;
  chunk_count_ += count;
  if (count > kChunksMax || chunk_count_ > kChunksMax) return false;
  Json::Array list;
  std::vector<hsize_t> offset(rank);
  for (hsize_t i = 0; i < count; ++i) {
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t size = 0;
    if (H5Dget_chunk_info(dataset, space, i, offset.data(), &mask, &address, &size) < 0)
      return false;
    Json::Array row = {std::uint64_t{address}, std::uint64_t{size}, std::uint64_t{mask}};
    for (const hsize_t element : offset) row.emplace_back(std::uint64_t{element});
    list.emplace_back(std::move(row));
  }
  out.set("chunks", std::move(list));
  return true;
}

void Walk::write_attributes(hid_t group) {
  Json attributes = describe_attributes(group);
  if (attributes.array()->empty()) return;
  Json out = line("group");
  out.set("attributes", std::move(attributes));
  write(out);
}

Json Walk::line(const char* kind) const {
  Json out = Json(Json::Object{});
  out.set("kind", kind);
  out.set("path", Json::Array(path_.begin(), path_.end()));
  return out;
}

void Walk::write(const Json& line) {
  const std::string text = line.text() + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  ++line_count_;
}

void Walk::note(const char* kind, const std::string& what) {
  Json out = line(kind);
  out.set("what", what);
  write(out);
}

bool Walk::fail(const std::string& what) {
  note("error", what);
  return false;
}

}  // namespace ckptverify::hdf5_child
