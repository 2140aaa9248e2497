// Words that stand before a step, in the order in which they count: "epoch=1-step=10" is step 10.
#include "formats/container/checkpoint_names.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

constexpr std::array<std::string_view, 15> kWords = {
    "global_step", "step", "iteration", "iter",  "checkpoint", "ckpt",    "chkpt", "snapshot",
    "save",        "ep",   "epoch",     "model", "state",      "weights", "net"};
constexpr std::array<std::string_view, 7> kUnnumbered = {"last",    "latest", "best",   "final",
                                                         "release", "newest", "current"};
constexpr std::array<std::string_view, 12> kExtensions = {
    ".pt",   ".pth",   ".ckpt", ".bin", ".safetensors", ".h5",
    ".hdf5", ".keras", ".tar",  ".npz", ".pkl",         ".msgpack"};
constexpr std::array<std::string_view, 7> kTemporaryStarts = {".tmp-", ".tmp_", ".tmp.", "tmp-",
                                                              "tmp_",  "temp-", "temp_"};
constexpr std::array<std::string_view, 8> kTemporaryEnds = {
    ".tmp", "-tmp", "_tmp", ".temp", ".partial", ".part", ".incomplete", ".writing"};
constexpr std::string_view kOrbaxTemporary = ".orbax-checkpoint-tmp";
// Files of a part of one checkpoint, not of one checkpoint among others.
constexpr std::array<std::string_view, 5> kParts = {"rank", "-of-", "rng", "random_state", "shard"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

/// The number that the text begins with and that ends before any letter.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  if (end != text.data() + text.size() && is_letter(*end)) return std::nullopt;
  return number;
}

/// 12 in "my_ckpt_12" after "ckpt".
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view word) {
  for (std::size_t place = text.find(word); place != std::string_view::npos;
       place = text.find(word, place + 1)) {
    if (place > 0 && (is_letter(text[place - 1]) || is_digit(text[place - 1]))) continue;
    std::string_view rest = text.substr(place + word.size());
    if (!rest.empty() && std::string_view("-_=.").find(rest.front()) != std::string_view::npos)
      rest.remove_prefix(1);
    if (const auto number = leading_number(rest)) return number;
  }
  return std::nullopt;
}

std::string family_of(std::string_view text) {
  std::string family;
  for (const char c : text)
    if (!is_digit(c))
      family += c;
    else if (family.empty() || family.back() != '#')
      family += '#';
  return family;
}

/// The name without what marks it as unfinished; whether anything did.
bool take_temporary(std::string& name) {
  bool temporary = false;
  if (const std::size_t orbax = name.find(kOrbaxTemporary); orbax != std::string::npos) {
    name.erase(orbax);
    temporary = true;
  }
  for (const std::string_view start : kTemporaryStarts)
    if (name.starts_with(start)) {
      name.erase(0, start.size());
      temporary = true;
      break;
    }
  for (const std::string_view end : kTemporaryEnds)
    if (name.ends_with(end)) {
      name.erase(name.size() - end.size());
      temporary = true;
      break;
    }
  return temporary;
}

/// "last", "last-v1".
bool is_unnumbered(std::string_view stem) {
  return std::any_of(kUnnumbered.begin(), kUnnumbered.end(), [stem](std::string_view word) {
    return stem == word || number_between(stem, std::string(word) + "-v", "").has_value();
  });
}

std::optional<CheckpointName> parse(const std::string& stem, bool temporary) {
  CheckpointName name{.family = family_of(stem), .temporary = temporary};
  if (is_unnumbered(stem)) return name;
  name.step = number_between(stem, "", "");
  for (const std::string_view word : kWords) {
    if (name.step) break;
    name.step = number_after(stem, word);
  }
  return name.step ? std::optional(name) : std::nullopt;
}

}  // namespace

std::optional<CheckpointName> directory_checkpoint_name(std::string_view name) {
  std::string stem = lower(name);
  const bool temporary = take_temporary(stem);
  if (stem.ends_with(".ckpt")) stem.erase(stem.size() - 5);
  // "latest" beside directories is a pointer to one of them.
  if (stem == "latest" || stem == "tmp") return std::nullopt;
  return parse(stem, temporary);
}

bool has_checkpoint_extension(std::string_view name) {
  const std::string text = lower(name);
  return std::any_of(kExtensions.begin(), kExtensions.end(),
                     [&text](std::string_view end) { return text.ends_with(end); });
}

std::optional<CheckpointName> file_checkpoint_name(std::string_view name) {
  std::string stem = lower(name);
  const bool temporary = take_temporary(stem);
  if (!has_checkpoint_extension(stem)) return std::nullopt;
  stem.erase(stem.rfind('.'));
  if (stem.ends_with(".weights")) stem.erase(stem.size() - 8);
  for (const std::string_view part : kParts)
    if (stem.find(part) != std::string::npos) return std::nullopt;
  return parse(stem, temporary);
}

}  // namespace ckptverify
