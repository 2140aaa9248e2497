// Megatron.
//
//   save/
//     latest_checkpointed_iteration.txt              "100" or "release", written last
//     iter_0000100/                                  distributed:
//       metadata.json                                {"sharded_backend": ...}, written last
//       .metadata, __0_0.distcp, ...                 a PyTorch distributed checkpoint
//       common.pt                                    in newer ones an object of it
//       integrity.json                               SHA-256 of the other files, if asked for
//     iter_0000100/                                  legacy:
//       mp_rank_00_000/model_optim_rng.pt            of each tensor, pipeline and expert rank
//       mp_rank_00_000/distrib_optim.pt
#include "formats/megatron.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/count_text.h"
#include "ckptverify/json.h"
#include "ckptverify/sha256.h"
#include "formats/container/assembly.h"
#include "formats/container/dcp_reader.h"
#include "formats/container/directory_names.h"
#include "formats/container/generation.h"
#include "formats/container/megatron_states.h"
#include "formats/encoding/torch_objects.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.container";
constexpr std::string_view kTracker = "latest_checkpointed_iteration.txt";
constexpr std::string_view kRelease = "release";
constexpr std::string_view kMarker = "metadata.json";
constexpr std::string_view kCommon = "common.pt";
constexpr std::string_view kIntegrity = "integrity.json";
constexpr std::string_view kRankFile = "model_optim_rng.pt";
constexpr std::string_view kOptimizerFile = "distrib_optim.pt";
constexpr std::uint64_t kTrackerBytesMax = 64;
constexpr std::size_t kIterationWidth = 7;

bool is_iteration(const std::string& name) {
  return name == kRelease || megatron_iteration(name).has_value();
}

Finding finding(Status status, std::string_view subject, const std::string& message) {
  Finding finding{.check = std::string(kCheck),
                  .status = status,
                  .subject = std::string(subject),
                  .message = {}};
  finding.message.append(subject).append(": ").append(message);
  if (status == Status::kFail) finding.cause = Cause{CauseKind::kUncommitted, {}};
  return finding;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

/// The directory that the tracker's text names; none where it is neither a number nor "release".
std::optional<std::string> tracked_directory(const std::string& text) {
  if (text == kRelease) return text;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) return std::nullopt;
  const std::size_t zeros = text.size() < kIterationWidth ? kIterationWidth - text.size() : 0;
  return "iter_" + std::string(zeros, '0') + text;
}

std::string hex_of_sha256(Bytes bytes) {
  return sha256_hex(bytes);
}

/// Moves every entry to its place, in the order of the files, what is said twice said once.
template <class Place>
void place_all(Checkpoint& part, SaidOnce& said, const std::string& own_root, const Place& place) {
  std::vector<Entry> kept;
  for (Entry& entry : part.entries) {
    entry.alias_of.clear();
    const Placement target = place(entry.path);
    if (said.place(entry, target, own_root)) kept.push_back(std::move(entry));
  }
  part.entries = std::move(kept);
}

/// The iteration that the state itself counts is the one that the directory is named after.
void check_iteration(Checkpoint& checkpoint, const std::string& directory) {
  const std::size_t slash = directory.find_last_of('/');
  const std::string name = slash == std::string::npos ? directory : directory.substr(slash + 1);
  const auto named = megatron_iteration(name);
  const auto counted = whole_number(checkpoint, "step.iteration");
  if (!named || !counted || *counted < 0 || *named == static_cast<std::uint64_t>(*counted)) return;
  mixed_steps(checkpoint, Status::kFail, name,
              "holds another iteration than it is named after; found " + std::to_string(*counted) +
                  ", expected " + std::to_string(*named),
              {});
}

/// One digest a file, of all files directly in the directory.
void add_integrity(Assembly& assembly) {
  const std::string name(kIntegrity);
  const auto source = assembly.directory().member(name);
  if (!source) return assembly.refuse(name, source.error());
  auto json = Json::parse(as_text(source->bytes()));
  const Json* files = json ? json->find("files") : nullptr;
  if (files == nullptr || files->object() == nullptr)
    return assembly.refuse(name, json ? Error{.message = "has no object 'files'",
                                              .cause = Cause{CauseKind::kBitrot, {}}}
                                      : std::move(json).error());
  assembly.add_accessory(name);
  const Json* algorithm = json->find("algorithm");
  if (algorithm == nullptr || algorithm->string() == nullptr || *algorithm->string() != "sha256") {
    assembly.checkpoint().uninterpreted.push_back(
        name + ": digests of another algorithm than sha256 are not verified");
    return;
  }
  Checkpoint& checkpoint = assembly.checkpoint();
  for (const auto& [file, digest] : *files->object()) {
    const auto known =
        std::find_if(checkpoint.files.begin(), checkpoint.files.end(),
                     [&wanted = file](const Source& each) { return each.name() == wanted; });
    if (known == checkpoint.files.end() || digest.string() == nullptr) {
      assembly.fail(CauseKind::kShardMissing, name, "lists '" + file + "', which is not there");
      continue;
    }
    const std::uint64_t size = known->bytes().size();
    checkpoint.checksums.push_back(
        {.subject = file,
         .run = {.file = static_cast<std::uint32_t>(known - checkpoint.files.begin()),
                 .offset = 0,
                 .stored_size = size,
                 .size = size},
         .algorithm = "sha256",
         .expected = *digest.string(),
         .compute = hex_of_sha256});
  }
}

std::vector<MegatronRank> ranks_in(const Source& directory) {
  std::vector<MegatronRank> ranks;
  for (const std::string& name : top_directories(directory))
    if (auto rank = megatron_rank(name);
        rank && (directory.has_member(name + "/" + std::string(kRankFile)) ||
                 directory.has_member(name + "/" + std::string(kOptimizerFile))))
      ranks.push_back(*std::move(rank));
  std::sort(ranks.begin(), ranks.end(),
            [](const MegatronRank& a, const MegatronRank& b) { return a.numbers < b.numbers; });
  return ranks;
}

/// "mp_rank_01_003" of the numbers 1 and 3, as wide as its sibling's.
std::string rank_directory(const std::string& sibling, const std::vector<std::uint32_t>& numbers) {
  std::string name = sibling;
  std::string before = "mp_rank_";
  for (const std::uint32_t number : numbers) {
    name = with_number(name, before, number);
    before = name.substr(0, name.find('_', before.size()) + 1);
  }
  return name;
}

/// The ranks are a whole grid: every tensor rank with every pipeline rank with every expert rank.
void check_grid(Assembly& assembly, const std::vector<MegatronRank>& ranks) {
  constexpr std::uint64_t kShownMax = 16;
  std::set<std::vector<std::uint32_t>> there;
  std::vector<std::uint64_t> sizes(ranks.front().numbers.size(), 1);
  for (const MegatronRank& rank : ranks) {
    there.insert(rank.numbers);
    if (rank.numbers.size() != sizes.size()) {
      assembly.fail(CauseKind::kUncommitted, rank.name,
                    "is of another parallel layout than " + ranks.front().name);
      return;
    }
    for (std::size_t d = 0; d < sizes.size(); ++d)
      sizes[d] = std::max<std::uint64_t>(sizes[d], std::uint64_t{rank.numbers[d]} + 1);
  }
  constexpr std::array<std::string_view, 2> kArguments = {"tensor_model_parallel_size",
                                                          "pipeline_model_parallel_size"};
  for (std::size_t d = 0; d < std::min(sizes.size(), kArguments.size()); ++d) {
    const auto said =
        whole_number(assembly.checkpoint(), "config.args." + std::string(kArguments[d]));
    const bool pipeline_named = d == 0 || *std::max_element(sizes.begin() + 1, sizes.end()) > 1;
    if (said && *said > 0 && pipeline_named && static_cast<std::uint64_t>(*said) > sizes[d])
      sizes[d] = static_cast<std::uint64_t>(*said);
  }
  const auto count = checked_product(sizes);
  if (!count || *count > (1U << 20)) return;  // no run has had a million ranks
  std::uint64_t missing = 0;
  for (std::uint64_t cell = 0; cell < *count; ++cell) {
    std::vector<std::uint32_t> numbers(sizes.size());
    std::uint64_t rest = cell;
    for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d])
      numbers[d] = static_cast<std::uint32_t>(rest % sizes[d]);
    if (there.contains(numbers) || ++missing > kShownMax) continue;
    std::string name;
    for (const std::uint32_t number : numbers)
      name += (name.empty() ? "" : ", ") + std::to_string(number);
    assembly.fail(CauseKind::kShardMissing, assembly.directory().name(),
                  "model rank (" + name + ") is not there; expected " + count_text(*count, "rank") +
                      " and " + rank_directory(ranks.front().name, numbers));
  }
}

void add_rank(Assembly& assembly, const MegatronRank& rank, const MegatronPlace& place,
              SaidOnce& said) {
  const std::string own_root = "megatron." + rank.name + ".";
  const std::string file = rank.name + "/" + std::string(kRankFile);
  if (!assembly.directory().has_member(file)) {
    assembly.fail(CauseKind::kShardMissing, rank.name, "has no " + std::string(kRankFile));
  } else if (auto part = assembly.read(file)) {
    place_all(*part, said, own_root,
              [&](const std::string& path) { return megatron_placement(path, place); });
    assembly.absorb(*std::move(part), {});
  }
  const std::string optimizer = rank.name + "/" + std::string(kOptimizerFile);
  if (!assembly.directory().has_member(optimizer)) return;
  if (auto part = assembly.read(optimizer)) {
    place_all(*part, said, own_root, [&](const std::string& path) {
      return megatron_placement("optimizer.distributed." + path, place);
    });
    assembly.absorb(*std::move(part), {});
  }
}

/// The iterations of the ranks, and that one of them is no other's.
void check_generations(Assembly& assembly, const std::vector<MegatronRank>& ranks) {
  const auto first = whole_number(assembly.checkpoint(), "step.iteration");
  for (const MegatronRank& rank : ranks) {
    const auto own =
        whole_number(assembly.checkpoint(), "megatron." + rank.name + ".step.iteration");
    if (first && own)
      mixed_steps(assembly.checkpoint(), Status::kFail, rank.name,
                  "is of another save; found iteration " + std::to_string(*own) + ", expected " +
                      std::to_string(*first),
                  {});
  }
}

}  // namespace

bool sniff_megatron(const Source& source) {
  return source.is_directory() && source.has_member(kTracker);
}

Result<Checkpoint> read_megatron(const Source& source, const FormatTable& table) {
  CKPTVERIFY_TRY(const Source tracker, source.member(kTracker));
  const Bytes bytes = tracker.bytes();
  const std::string text = trimmed(as_text(bytes.first(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), kTrackerBytesMax)))));
  const auto wanted = tracked_directory(text);
  std::vector<std::string> iterations = top_directories(source);
  std::erase_if(iterations, [](const std::string& name) { return !is_iteration(name); });
  Checkpoint checkpoint;
  checkpoint.format = "megatron";
  const bool there =
      wanted && std::find(iterations.begin(), iterations.end(), *wanted) != iterations.end();
  if (!there) {
    checkpoint.findings.push_back(finding(Status::kFail, kTracker,
                                          "names no iteration that is there; found '" + text +
                                              "', expected one of " +
                                              std::to_string(iterations.size()) + " iterations"));
    return checkpoint;
  }
  CKPTVERIFY_TRY(const Source iteration, source.subdirectory(*wanted));
  auto read = table.read(iteration);
  if (!read) return std::move(read).error().about(*wanted);
  for (const std::string& name : iterations)
    if (*wanted != kRelease && name != kRelease && natural_less(*wanted, name))
      read->findings.push_back(finding(
          Status::kWarn, kTracker,
          "does not name the last iteration; found '" + text + "', and " + name + " is there"));
  return read;
}

bool sniff_megatron_dist(const Source& source) {
  if (!source.is_directory()) return false;
  if (source.has_member(kCommon) && has_dcp_files(source)) return true;
  if (!source.has_member(kMarker)) return false;
  const auto marker = source.member(kMarker);
  const auto json = marker ? Json::parse(as_text(marker->bytes())) : Result<Json>(marker.error());
  return json && json->find("sharded_backend") != nullptr;
}

Result<Checkpoint> read_megatron_dist(const Source& source, const FormatTable& table) {
  Assembly assembly("megatron-dist", source, table);
  if (source.has_member(kMarker))
    assembly.add_json(std::string(kMarker), {.root = "megatron."});
  else
    assembly.fail(CauseKind::kUncommitted, std::string(kMarker),
                  "is not there, which is written last; the save did not come to its end");
  SaidOnce said;
  if (source.has_member(kCommon)) {
    if (auto part = assembly.read(std::string(kCommon))) {
      place_all(*part, said, "megatron.common.",
                [](const std::string& path) { return megatron_placement(path, {}); });
      assembly.absorb(*std::move(part), {});
    }
  }
  const std::size_t before = assembly.checkpoint().entries.size();
  if (auto read = read_dcp_into(assembly); !read) assembly.note(std::move(read).error());
  Checkpoint& checkpoint = assembly.checkpoint();
  for (std::size_t i = before; i < checkpoint.entries.size(); ++i) {
    Entry& entry = checkpoint.entries[i];
    Placement target = megatron_shard_placement(entry.path);
    entry.path = std::move(target.path);
    entry.component = target.component;
    entry.rank = target.rank;
    entry.root_size = target.root_size;
    entry.alias_of.clear();
  }
  if (source.has_member(kIntegrity)) add_integrity(assembly);
  Checkpoint done = std::move(assembly).finish();
  check_iteration(done, source.name());
  find_aliases(done.entries);
  return done;
}

bool sniff_megatron_legacy(const Source& source) {
  return source.is_directory() && !ranks_in(source).empty();
}

Result<Checkpoint> read_megatron_legacy(const Source& source, const FormatTable& table) {
  Assembly assembly("megatron-legacy", source, table);
  const std::vector<MegatronRank> ranks = ranks_in(source);
  SaidOnce said;
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    MegatronPlace place;
    if (ranks.size() > 1) place = {.rank = i, .label = ranks[i].name};
    add_rank(assembly, ranks[i], place, said);
  }
  check_grid(assembly, ranks);
  check_generations(assembly, ranks);
  Checkpoint done = std::move(assembly).finish();
  check_iteration(done, source.name());
  find_aliases(done.entries);
  return done;
}

}  // namespace ckptverify
