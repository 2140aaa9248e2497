// Source: deepspeed/runtime/engine.py (_get_ckpt_name and its like), pipe/module.py
// (ckpt_layer_path).
#include "formats/container/deepspeed_names.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

/// The numbers of `name` where the pattern has '#', the rest being equal; none where it is not.
std::optional<std::vector<std::uint32_t>> numbers_in(std::string_view name,
                                                     std::string_view pattern) {
  std::vector<std::uint32_t> numbers;
  for (const char expected : pattern) {
    if (expected != '#') {
      if (name.empty() || name.front() != expected) return std::nullopt;
      name.remove_prefix(1);
      continue;
    }
    std::uint64_t number = 0;
    std::size_t digits = 0;
    for (; digits < name.size() && name[digits] >= '0' && name[digits] <= '9'; ++digits) {
      number = number * 10 + static_cast<std::uint64_t>(name[digits] - '0');
      if (number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    }
    if (digits == 0) return std::nullopt;
    name.remove_prefix(digits);
    numbers.push_back(static_cast<std::uint32_t>(number));
  }
  if (!name.empty()) return std::nullopt;
  return numbers;
}

std::optional<DeepspeedFile> optimizer_file(std::string_view name) {
  DeepspeedFile file{.kind = DeepspeedKind::kOptimizer, .name = std::string(name)};
  std::string_view rest = name;
  for (const std::string_view prefix : {"bf16_", "fp16_"})
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  // The oldest versions glued the last word on.
  for (const std::string_view pattern :
       {"zero_pp_rank_#_mp_rank_#_optim_states.pt", "zero_pp_rank_#_mp_rank_#optim_states.pt"}) {
    const auto numbers = numbers_in(rest, pattern);
    if (!numbers) continue;
    file.data_rank = (*numbers)[0];
    file.model_rank = (*numbers)[1];
    file.per_data_rank = true;
    return file;
  }
  const auto numbers = numbers_in(name, "expp_rank_#_mp_rank_#_optim_states.pt");
  if (!numbers) return std::nullopt;
  file.kind = DeepspeedKind::kExpertOptimizer;
  file.data_rank = (*numbers)[0];
  file.model_rank = (*numbers)[1];
  return file;
}

std::optional<DeepspeedFile> model_file(std::string_view name) {
  DeepspeedFile file{.kind = DeepspeedKind::kModel, .name = std::string(name)};
  if (const auto numbers = numbers_in(name, "mp_rank_#_model_states.pt")) {
    file.model_rank = (*numbers)[0];
    return file;
  }
  if (const auto numbers = numbers_in(name, "zero_pp_rank_#_mp_rank_#_model_states.pt")) {
    file.data_rank = (*numbers)[0];
    file.model_rank = (*numbers)[1];
    file.per_data_rank = true;
    return file;
  }
  file.kind = DeepspeedKind::kExpert;
  if (const auto numbers = numbers_in(name, "layer_#_expert_#_mp_rank_#_model_states.pt")) {
    file.part =
        "layer_" + std::to_string((*numbers)[0]) + ".expert_" + std::to_string((*numbers)[1]);
    file.model_rank = (*numbers)[2];
    return file;
  }
  if (const auto numbers = numbers_in(name, "expert_#_mp_rank_#_model_states.pt")) {
    file.part = "expert_" + std::to_string((*numbers)[0]);
    file.model_rank = (*numbers)[1];
    return file;
  }
  return std::nullopt;
}

/// layer_03-model_01-model_states.pt: between layer and ending stands the rank in the topology.
std::optional<DeepspeedFile> layer_file(std::string_view name) {
  constexpr std::string_view kEnding = "-model_states.pt";
  if (!name.starts_with("layer_") || !name.ends_with(kEnding)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kEnding.size());
  const std::size_t dash = stem.find('-');
  DeepspeedFile file{.kind = DeepspeedKind::kLayer, .name = std::string(name)};
  file.part = std::string(stem.substr(0, dash));
  if (!numbers_in(file.part, "layer_#")) return std::nullopt;
  if (dash == std::string_view::npos) return file;
  const auto numbers = numbers_in(stem.substr(dash), "-model_#");
  if (!numbers) return std::nullopt;
  file.model_rank = (*numbers)[0];
  return file;
}

}  // namespace

std::optional<DeepspeedFile> deepspeed_file(std::string_view name) {
  if (auto file = model_file(name)) return file;
  if (auto file = optimizer_file(name)) return file;
  return layer_file(name);
}

std::vector<DeepspeedFile> deepspeed_files(const Source& directory) {
  std::vector<DeepspeedFile> files;
  for (const std::string& name : directory.members()) {
    if (name.find('/') != std::string::npos) continue;
    if (auto file = deepspeed_file(name)) files.push_back(*std::move(file));
  }
  const auto key = [](const DeepspeedFile& file) {
    return std::tuple(file.kind, file.model_rank, file.data_rank);
  };
  std::sort(files.begin(), files.end(), [&](const DeepspeedFile& a, const DeepspeedFile& b) {
    if (key(a) != key(b)) return key(a) < key(b);
    return a.part != b.part ? natural_less(a.part, b.part) : a.name < b.name;
  });
  return files;
}

std::string deepspeed_sibling(const std::vector<DeepspeedFile>& files, DeepspeedKind kind,
                              std::uint64_t data_rank, std::uint64_t model_rank) {
  const auto of_kind = std::find_if(files.begin(), files.end(), [kind](const DeepspeedFile& file) {
    return file.kind == kind && file.part.empty();
  });
  std::string name = kind == DeepspeedKind::kModel ? "mp_rank_00_model_states.pt"
                                                   : "zero_pp_rank_0_mp_rank_00_optim_states.pt";
  if (of_kind != files.end()) name = of_kind->name;
  name = with_number(std::move(name), "pp_rank_", data_rank);
  return with_number(std::move(name), "mp_rank_", model_rank);
}

std::vector<std::string> deepspeed_tags(const Source& directory) {
  std::set<std::string> tags;
  std::set<std::string> universal;
  for (const std::string& name : directory.members()) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    const std::string_view rest = std::string_view(name).substr(slash + 1);
    if (rest.starts_with("zero/")) universal.insert(name.substr(0, slash));
    if (deepspeed_file(rest)) tags.insert(name.substr(0, slash));
  }
  std::vector<std::string> found;
  std::set_difference(tags.begin(), tags.end(), universal.begin(), universal.end(),
                      std::back_inserter(found));
  std::sort(found.begin(), found.end(), natural_less);
  return found;
}

}  // namespace ckptverify
