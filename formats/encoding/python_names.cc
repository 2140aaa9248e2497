#include "formats/encoding/python_names.h"

#include <algorithm>
#include <array>

#include "formats/encoding/pickle_globals.h"
#include "formats/encoding/torch_tensor.h"

namespace ckptverify {
namespace {

// A tuple whose items are one tuple again and again unfolds without end.
constexpr std::size_t kKeyTextMax = 4096;

}  // namespace

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string key_text(const PickleNode& key, unsigned depth) {
  if (const auto text = key.string()) return std::string(*text);
  if (key.is_none()) return "None";
  if (const auto truth = key.boolean()) return *truth ? "True" : "False";
  if (key.is_scalar()) return value_text(key.value());
  if (key.kind == PickleKind::kTuple && depth < 4) {
    std::string text = "(";
    for (std::size_t i = 0; i < key.items().size(); ++i) {
      if (text.size() > kKeyTextMax) return text + ", ...)";
      text += (i == 0 ? "" : ", ") + key_text(*key.items()[i], depth + 1);
    }
    return text + ")";
  }
  const std::string name =
      key.kind == PickleKind::kGlobal ? qualified_name(key) : callee(key) + "()";
  return "<" + name + ">";
}

std::vector<const PickleNode*> attribute_dicts(PickleItems states) {
  std::vector<const PickleNode*> dicts;
  for (const PickleNode* state : states) {
    if (state->kind == PickleKind::kDict) dicts.push_back(state);
    if (state->kind != PickleKind::kTuple || state->items().size() != 2) continue;
    for (const PickleNode* part : state->items()) {
      if (part->kind == PickleKind::kDict) dicts.push_back(part);
    }
  }
  return dicts;
}

const PickleNode* attribute(const PickleNode& object, std::string_view name,
                            std::size_t pairs_max) {
  std::size_t left = pairs_max;
  const auto last_in = [&](const PickleNode& dict) -> const PickleNode* {
    const auto pairs = dict.pairs().last(std::min(left, dict.pairs().size()));
    left -= pairs.size();
    const auto found = std::find_if(pairs.rbegin(), pairs.rend(), [name](const PicklePair& pair) {
      return pair.first->string() == name;
    });
    return found == pairs.rend() ? nullptr : found->second;
  };
  const PickleItems states = object.states().last(std::min(pairs_max, object.states().size()));
  for (auto state = states.rbegin(); state != states.rend(); ++state) {
    const bool slots = (*state)->kind == PickleKind::kTuple && (*state)->items().size() == 2;
    const PickleItems parts = slots ? (*state)->items() : PickleItems(&*state, 1);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if ((*part)->kind != PickleKind::kDict) continue;
      if (const PickleNode* found = last_in(**part)) return found;
    }
  }
  return nullptr;
}

bool is_module(const PickleNode& node) {
  return attribute(node, "_parameters") != nullptr && attribute(node, "_modules") != nullptr;
}

bool is_script_object(const PickleNode& node) {
  const std::string name = callee(node);
  return node.kind == PickleKind::kObject &&
         (name.starts_with("__torch__.") || name.starts_with("__torch__"));
}

bool is_mapping_call(std::string_view name) {
  return name == "collections.OrderedDict" || name == "collections.defaultdict" ||
         name == "collections.Counter" || name == "builtins.dict";
}

bool is_list_call(std::string_view name) {
  return name == "collections.deque" || name == "builtins.list" || name == "builtins.tuple" ||
         name == "torch.Size" || name == "torch.jit._pickle.build_intlist" ||
         name == "torch.jit._pickle.build_doublelist" ||
         name == "torch.jit._pickle.build_boollist" || name == "torch.jit._pickle.build_tensorlist";
}

bool is_named_value(std::string_view name) {
  constexpr std::array<std::string_view, 16> kNames = {"torch.per_tensor_affine",
                                                       "torch.per_channel_affine",
                                                       "torch.per_tensor_symmetric",
                                                       "torch.per_channel_symmetric",
                                                       "torch.per_channel_affine_float_qparams",
                                                       "torch.strided",
                                                       "torch.sparse_coo",
                                                       "torch.sparse_csr",
                                                       "torch.sparse_csc",
                                                       "torch.sparse_bsr",
                                                       "torch.sparse_bsc",
                                                       "torch.jagged",
                                                       "torch.contiguous_format",
                                                       "torch.preserve_format",
                                                       "torch.channels_last",
                                                       "torch.channels_last_3d"};
  return torch_dtype(name).has_value() ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace ckptverify
