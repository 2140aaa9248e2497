// Names only; nothing is parsed here but the schema's name in an index without a digest.
#include "formats/container/sharded_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

namespace ckptverify {
namespace {

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kStep = "step-";
constexpr std::string_view kIndex = "index.json";
constexpr std::string_view kIndexDigest = "index.json.xxh3";
constexpr std::string_view kSchema = "\"ckptverify.sharded/";
constexpr std::array<std::string_view, 3> kExtensions = {".h5", ".safetensors", ".pt"};

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_digits(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

/// shard-00000-of-00004.h5
bool is_shard_name(std::string_view name) {
  return take(name, "shard-") && take_digits(name) && take(name, "-of-") && take_digits(name) &&
         std::find(kExtensions.begin(), kExtensions.end(), name) != kExtensions.end();
}

bool has_our_index(const Source& directory) {
  if (!directory.has_member(kIndex)) return false;
  const auto index = directory.member(kIndex);
  return index && as_text(index->bytes()).find(kSchema) != std::string_view::npos;
}

}  // namespace

std::string directory_name(const Source& directory) {
  std::filesystem::path path = directory.path().empty()
                                   ? std::filesystem::path(directory.name())
                                   : std::filesystem::absolute(directory.path());
  path = path.lexically_normal();
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

std::optional<std::uint64_t> step_of_name(std::string_view name) {
  if (!take(name, kStep)) return std::nullopt;
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return step;
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporary);
}

bool is_sharded_checkpoint(const Source& directory) {
  if (directory.has_member(kIndexDigest) || has_our_index(directory)) return true;
  return std::any_of(directory.members().begin(), directory.members().end(), is_shard_name);
}

}  // namespace ckptverify
