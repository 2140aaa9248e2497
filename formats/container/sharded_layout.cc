// Names only; nothing is parsed here but the schema's name in an index without a digest.
#include "formats/container/sharded_layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

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

std::string_view without_temporary(std::string_view name) {
  take(name, kTemporary);
  return name;
}

std::string joined(const std::vector<ShardedDirectory>& directories, bool complete) {
  std::string names;
  for (const ShardedDirectory& directory : directories)
    if (directory.complete == complete) names += (names.empty() ? "" : ", ") + directory.name;
  return names.empty() ? "none" : names;
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

std::vector<ShardedDirectory> sharded_checkpoints_in(const Source& directory) {
  std::map<std::string, std::set<std::string_view>, std::less<>> files_of;
  for (const std::string& member : directory.members()) {
    const std::size_t slash = member.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view name = std::string_view(member).substr(0, slash);
    if (step_of_name(without_temporary(name)))
      files_of[std::string(name)].insert(std::string_view(member).substr(slash + 1));
  }
  std::vector<ShardedDirectory> found;
  for (const auto& [name, files] : files_of) {
    const bool ours =
        files.contains(kIndexDigest) || std::any_of(files.begin(), files.end(), is_shard_name);
    const bool complete =
        files.contains(kIndex) && files.contains(kIndexDigest) && !is_temporary_name(name);
    if (ours) found.push_back({.name = name, .complete = complete});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return step_of_name(without_temporary(a.name)) < step_of_name(without_temporary(b.name));
  });
  return found;
}

Error name_one_of(const Source& directory) {
  const std::vector<ShardedDirectory> found = sharded_checkpoints_in(directory);
  return Error{.kind = ErrorKind::kUsage,
               .message = "a directory of checkpoints, name one of them; found complete: " +
                          joined(found, true) + "; not complete: " + joined(found, false)};
}

}  // namespace ckptverify
