// transformers takes model.safetensors, else its index, else pytorch_model.bin, else its index.
#include "formats/container/model_files.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "formats/container/directory_names.h"
#include "formats/container/shard_index.h"

namespace ckptverify {
namespace {

struct Weights {
  std::string_view single;
  std::string_view index;
  std::string_view stem;    // of shards
  std::string_view suffix;  // of shards
};

constexpr std::array kWeights = {
    Weights{"model.safetensors", "model.safetensors.index.json", "model", ".safetensors"},
    Weights{"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model", ".bin"},
};
constexpr std::string_view kModelRoot = "model.";
constexpr std::array<std::string_view, 2> kAdapters = {"adapter_model.safetensors",
                                                       "adapter_model.bin"};
constexpr std::string_view kAdapterConfig = "adapter_config.json";

// Files that Hub models and processors bring along; none of them is state of a run.
constexpr std::array<std::string_view, 31> kAccessories = {
    "README.md",
    "LICENSE",
    "LICENSE.txt",
    "LICENSE.md",
    "NOTICE",
    "USE_POLICY.md",
    ".gitattributes",
    ".gitignore",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "preprocessor_config.json",
    "processor_config.json",
    "image_processor_config.json",
    "video_preprocessor_config.json",
    "feature_extractor_config.json",
    "chat_template.json",
    "chat_template.jinja",
    "modules.json",
    "zero_to_fp32.py",
    "tf_model.h5",
    "flax_model.msgpack",
    "rust_model.ot",
    "all_results.json",
};

bool is_accessory(std::string_view name) {
  if (std::find(kAccessories.begin(), kAccessories.end(), name) != kAccessories.end()) return true;
  // Code that comes with a model, tables of results, pictures of a model card.
  return name.ends_with(".py") || name.ends_with("_results.json") || name.ends_with(".jinja") ||
         name.ends_with(".png") || name.ends_with(".model");
}

/// Whether the directory holds shards of that stem, with or without an index.
bool has_shards(const Source& directory, const Weights& weights) {
  const std::string prefix = std::string(weights.stem) + "-";
  const auto& members = directory.members();
  auto member = std::lower_bound(members.begin(), members.end(), prefix);
  for (; member != members.end() && member->starts_with(prefix); ++member)
    if (shard_number(*member, prefix, weights.suffix)) return true;
  return false;
}

Role model_role() {
  return {.root = std::string(kModelRoot), .component = Component::kModel};
}

/// Another copy of the model in another form: claimed, so that it is not called a stray.
void leave_second(Assembly& assembly, std::string_view name, std::string_view taken) {
  assembly.add_accessory(std::string(name));
  assembly.warn(std::string(name),
                "is a second form of the model, which of them counts depends on "
                "who loads; read here is " +
                    std::string(taken));
}

void leave_second_shards(Assembly& assembly, const Weights& weights, std::string_view taken) {
  if (assembly.directory().has_member(weights.index)) leave_second(assembly, weights.index, taken);
  for (const std::string& file : top_files(assembly.directory()))
    if (!assembly.is_used(file) &&
        shard_number(file, std::string(weights.stem) + "-", weights.suffix))
      leave_second(assembly, file, taken);
}

/// The name of what was taken for the model; none where the directory has no weights.
std::optional<std::string_view> add_weights(Assembly& assembly) {
  const Source& directory = assembly.directory();
  std::optional<std::string_view> taken;
  for (const Weights& weights : kWeights) {
    if (directory.has_member(weights.single)) {
      if (taken) {
        leave_second(assembly, weights.single, *taken);
      } else {
        taken = weights.single;
        assembly.add(std::string(weights.single), model_role());
      }
    }
    const ShardNames names{std::string(weights.stem), std::string(weights.suffix)};
    if (taken) {
      leave_second_shards(assembly, weights, *taken);
    } else if (directory.has_member(weights.index)) {
      taken = weights.index;
      add_indexed_shards(assembly, std::string(weights.index), names, model_role());
    } else if (has_shards(directory, weights)) {
      taken = weights.stem;
      add_unindexed_shards(assembly, names, model_role());
    }
  }
  return taken;
}

bool is_adapter_directory(const Source& directory, const std::string& name) {
  return std::any_of(kAdapters.begin(), kAdapters.end(), [&](std::string_view file) {
    return directory.has_member(name + "/" + std::string(file));
  });
}

/// The adapter's files in `folder` ("" or "name/"); its weights under `role`, its settings beside.
bool add_adapter(Assembly& assembly, const std::string& folder, const Role& role) {
  const Source& directory = assembly.directory();
  std::optional<std::string_view> taken;
  for (const std::string_view file : kAdapters) {
    const std::string name = folder + std::string(file);
    if (!directory.has_member(name)) continue;
    if (taken) {
      leave_second(assembly, name, *taken);
      continue;
    }
    taken = file;
    assembly.add(name, role);
  }
  const std::string settings = folder + std::string(kAdapterConfig);
  const bool described = directory.has_member(settings);
  if (described)
    assembly.add_json(settings, {.root = "adapter_config." + role.root.substr(kModelRoot.size()),
                                 .component = Component::kConfig,
                                 .component_root = 0});
  if (taken && !described)
    assembly.fail(CauseKind::kShardMissing, settings,
                  "an adapter without its settings cannot be loaded; found no file, expected one "
                  "beside " +
                      std::string(*taken));
  if (!taken && described)
    assembly.fail(CauseKind::kShardMissing, folder + std::string(kAdapters[0]),
                  "settings of an adapter without its weights; found neither " +
                      std::string(kAdapters[0]) + " nor " + std::string(kAdapters[1]));
  return taken.has_value() || described;
}

bool add_adapters(Assembly& assembly) {
  bool found = add_adapter(assembly, "", model_role());
  for (const std::string& name : top_directories(assembly.directory())) {
    if (!is_adapter_directory(assembly.directory(), name)) continue;
    found = true;
    add_adapter(assembly, name + "/",
                {.root = std::string(kModelRoot) + name + ".",
                 .component = Component::kModel,
                 .component_root = kModelRoot.size()});
    const std::string card = name + "/README.md";
    if (assembly.directory().has_member(card)) assembly.add_accessory(card);
  }
  return found;
}

}  // namespace

ModelFiles find_model_files(const Source& directory) {
  ModelFiles found;
  for (const Weights& weights : kWeights)
    found.weights = found.weights || directory.has_member(weights.single) ||
                    directory.has_member(weights.index) || has_shards(directory, weights);
  found.adapters = directory.has_member(kAdapterConfig) ||
                   std::any_of(kAdapters.begin(), kAdapters.end(),
                               [&](std::string_view file) { return directory.has_member(file); });
  return found;
}

ModelFiles add_model_files(Assembly& assembly) {
  ModelFiles found;
  found.weights = add_weights(assembly).has_value();
  found.adapters = add_adapters(assembly);
  if (found.adapters && !found.weights)
    assembly.warn(std::string(kAdapterConfig),
                  "only the adapters are here; the base model that they belong to is not part of "
                  "this checkpoint");
  return found;
}

void add_model_settings(Assembly& assembly) {
  assembly.add_json("config.json", {.root = "config.", .component = Component::kConfig});
  assembly.add_json(
      "generation_config.json",
      {.root = "generation_config.", .component = Component::kConfig, .component_root = 0});
  for (const std::string& file : top_files(assembly.directory()))
    if (!assembly.is_used(file) && is_accessory(file)) assembly.add_accessory(file);
}

}  // namespace ckptverify
