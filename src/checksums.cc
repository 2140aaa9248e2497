// Verification of the digests that a checkpoint stores over runs of its own bytes.
#include "src/checksums.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "ckptverify/count_text.h"
#include "src/tensor_scan.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.checksums";

// Tensors that are named beside a wrong checksum over the bytes of several.
constexpr std::size_t kNamedMax = 3;

/// Which tensors' bytes begin where.
class TensorPlaces {
 public:
  explicit TensorPlaces(const Checkpoint& checkpoint) {
    for (const NamedTensor& named : tensors_with_data(checkpoint)) {
      for (const Piece& piece : named.tensor->pieces)
        if (piece.run.owned == nullptr)
          places_.push_back({piece.run.file, piece.run.offset, named.path});
    }
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      return std::tie(a.file, a.offset, a.path) < std::tie(b.file, b.offset, b.path);
    });
  }

  /// "layer.w", "a, b, c and 4 more"; empty where no tensor begins in the run.
  std::string named_in(const Run& run) const {
    std::string names;
    std::size_t count = 0;
    auto place = std::lower_bound(
        places_.begin(), places_.end(), run, [](const Place& one, const Run& wanted) {
          return std::tie(one.file, one.offset) < std::tie(wanted.file, wanted.offset);
        });
    for (; place != places_.end() && place->file == run.file &&
           place->offset - run.offset < run.stored_size;
         ++place) {
      if (++count <= kNamedMax) names += (names.empty() ? "" : ", ") + place->path;
    }
    if (count > kNamedMax) names += " and " + std::to_string(count - kNamedMax) + " more";
    return names;
  }

 private:
  struct Place {
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::string path;
  };
  std::vector<Place> places_;
};

Finding wrong_checksum(const Checkpoint& checkpoint, const StoredChecksum& checksum,
                       const FoundChecksum& found, const TensorPlaces& places) {
  Finding finding{.check = std::string(kCheck),
                  .status = Status::kFail,
                  .cause = Cause{.kind = CauseKind::kBitrot, .component = {}},
                  .subject = checksum.subject,
                  .message = {},
                  .evidence = {{"algorithm", std::string(checksum.algorithm)},
                               {"found", found.text},
                               {"expected", checksum.expected},
                               {"size", std::to_string(found.size)}}};
  std::string place;
  std::string tensors;
  if (!checksum.entry.empty()) {
    finding.evidence.push_back({"entry", checksum.entry});
  } else if (checksum.run.file < checkpoint.files.size()) {
    place = "byte " + std::to_string(checksum.run.offset) + ": ";
    finding.evidence.push_back({"file", checkpoint.files[checksum.run.file].name()});
    finding.evidence.push_back({"offset", std::to_string(checksum.run.offset)});
    tensors = places.named_in(checksum.run);
  }
  finding.message = checksum.subject + ": " + place + "the " + std::string(checksum.algorithm) +
                    " of " + std::to_string(found.size) + " bytes is wrong; found " + found.text +
                    ", expected " + checksum.expected;
  if (tensors.empty()) return finding;
  finding.evidence.push_back({"tensors", tensors});
  if (checksum.subject.find(tensors) == std::string::npos)
    finding.message += "; they are of " + tensors;
  return finding;
}

/// Nothing if the checksum is right.
std::optional<Finding> judge(const Checkpoint& checkpoint, const StoredChecksum& checksum,
                             const Result<FoundChecksum>& found,
                             std::optional<TensorPlaces>& places) {
  if (!found) return finding_of(Error(found.error()).about(checksum.subject), std::string(kCheck));
  if (found->text == checksum.expected) return std::nullopt;
  if (!places) places.emplace(checkpoint);  // asked for where something is wrong, which is seldom
  return wrong_checksum(checkpoint, checksum, *found, *places);
}

/// Sorted, and those that touch joined.
std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  });
  std::vector<ByteRange> result;
  for (const ByteRange& range : ranges) {
    ByteRange* last = result.empty() ? nullptr : &result.back();
    if (last == nullptr || last->file != range.file || range.offset > last->offset + last->size)
      result.push_back(range);
    else
      last->size = std::max(last->size, range.offset + range.size - last->offset);
  }
  return result;
}

std::uint64_t size_of(const std::vector<ByteRange>& ranges) {
  std::uint64_t size = 0;
  for (const ByteRange& range : ranges) size += range.size;
  return size;
}

/// Bytes that are in both; each side as joined() gives it.
std::uint64_t common_size(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
  std::uint64_t size = 0;
  auto other = b.begin();
  for (const ByteRange& range : a) {
    const std::uint64_t end = range.offset + range.size;
    while (other != b.end() &&
           (other->file < range.file ||
            (other->file == range.file && other->offset + other->size <= range.offset)))
      ++other;
    for (auto next = other; next != b.end() && next->file == range.file && next->offset < end;
         ++next)
      size += std::min(end, next->offset + next->size) - std::max(range.offset, next->offset);
  }
  return size;
}

void add_runs(const Tensor& tensor, std::vector<ByteRange>& ranges) {
  for (const Piece& piece : tensor.pieces) {
    const Run& run = piece.run;
    if (run.owned == nullptr && run.stored_size > 0)
      ranges.push_back({.file = run.file, .offset = run.offset, .size = run.stored_size});
  }
}

/// Of the stored bytes of tensors, how many there are and how many of them have a checksum.
struct Protection {
  std::uint64_t bytes = 0;
  std::uint64_t covered = 0;
};

Protection protection_of(const Checkpoint& checkpoint) {
  std::vector<ByteRange> stored;
  for (const NamedTensor& named : tensors_with_data(checkpoint)) add_runs(*named.tensor, stored);
  std::vector<ByteRange> covered;
  for (const StoredChecksum& checksum : checkpoint.checksums) {
    if (checksum.entry.empty()) {
      const Run& run = checksum.run;
      covered.push_back({.file = run.file, .offset = run.offset, .size = run.stored_size});
    } else if (const Entry* entry = find_entry(checkpoint, checksum.entry)) {
      if (const auto* tensor = std::get_if<Tensor>(&entry->node)) add_runs(*tensor, covered);
    }
  }
  const std::vector<ByteRange> of_tensors = joined(std::move(stored));
  return {.bytes = size_of(of_tensors),
          .covered = common_size(of_tensors, joined(std::move(covered)))};
}

Finding right_checksums(const Checkpoint& checkpoint,
                        const std::map<std::string_view, std::uint64_t>& right) {
  Finding finding{.check = std::string(kCheck), .message = {}};
  std::uint64_t right_count = 0;
  std::string algorithms;
  for (const auto& [algorithm, count] : right) {
    right_count += count;
    algorithms += (algorithms.empty() ? "" : ", ") + std::string(algorithm);
    finding.evidence.push_back({std::string(algorithm), std::to_string(count)});
  }
  finding.message = std::to_string(right_count) + " of " +
                    count_text(checkpoint.checksums.size(), "stored checksum is right",
                               "stored checksums are right") +
                    ", by " + algorithms;
  const Protection protection = protection_of(checkpoint);
  if (protection.covered == protection.bytes) return finding;
  finding.evidence.push_back({"tensor bytes", std::to_string(protection.bytes)});
  finding.evidence.push_back(
      {"without a checksum", std::to_string(protection.bytes - protection.covered)});
  finding.message += "; they cover " + std::to_string(protection.covered) + " of " +
                     count_text(protection.bytes, "byte of tensors", "bytes of tensors") +
                     ": elsewhere a value that changed is seen only against a fingerprint noted "
                     "before (ckptverify hash)";
  return finding;
}

}  // namespace

std::vector<Finding> checksum_findings(const Checkpoint& checkpoint, const Pass& pass) {
  const std::vector<StoredChecksum>& checksums = checkpoint.checksums;
  if (checksums.empty()) {
    return {{.check = std::string(kCheck),
             .status = Status::kNotObserved,
             .message = "the checkpoint carries no checksums: a value that changed is seen only "
                        "against a fingerprint noted before (ckptverify hash)"}};
  }
  std::vector<Finding> findings;
  std::map<std::string_view, std::uint64_t> right;
  std::optional<TensorPlaces> places;
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    if (auto wrong = judge(checkpoint, checksums[i], pass.checksums[i], places)) {
      findings.push_back(std::move(*wrong));
    } else {
      ++right[checksums[i].algorithm];
    }
  }
  if (!right.empty()) findings.push_back(right_checksums(checkpoint, right));
  return findings;
}

std::vector<ByteRange> damaged_ranges(const Checkpoint& checkpoint, const Pass& pass) {
  std::vector<ByteRange> damaged;
  for (std::size_t i = 0; i < pass.checksums.size(); ++i) {
    const StoredChecksum& checksum = checkpoint.checksums[i];
    if (!checksum.entry.empty() || !pass.checksums[i]) continue;
    if (pass.checksums[i]->text == checksum.expected) continue;
    const Run& run = checksum.run;
    damaged.push_back({.file = run.file, .offset = run.offset, .size = run.stored_size});
  }
  return joined(std::move(damaged));
}

bool lies_in(const Tensor& tensor, const std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> runs;
  add_runs(tensor, runs);
  return common_size(joined(std::move(runs)), ranges) > 0;
}

std::vector<Finding> verify_checksums(const Checkpoint& checkpoint, Threads threads) {
  return checksum_findings(checkpoint,
                           pass_over_bytes(checkpoint, {.checksums = true, .threads = threads}));
}

}  // namespace ckptverify
