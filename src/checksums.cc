// Verification of the digests that a checkpoint stores over runs of its own bytes.
#include <map>

#include "ckptverify/fingerprint.h"
#include "src/parallel.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.checksums";

/// What the checksum covers: a tensor's logical bytes, bytes that no file holds as such, or those
/// in the file.
Result<LogicalBytes> covered_bytes(const Checkpoint& checkpoint, const StoredChecksum& checksum) {
  if (!checksum.entry.empty()) {
    const Entry* entry = find_entry(checkpoint, checksum.entry);
    const Tensor* tensor = entry == nullptr ? nullptr : std::get_if<Tensor>(&entry->node);
    if (tensor == nullptr) {
      return Error{.kind = ErrorKind::kMalformed,
                   .message = "a checksum covers a tensor that is not there; expected a tensor " +
                              checksum.entry};
    }
    return logical_bytes(checkpoint, *tensor);
  }
  CKPTVERIFY_TRY(const Bytes bytes, stored_bytes(checkpoint, checksum.run));
  return LogicalBytes(bytes);
}

Finding wrong_checksum(const Checkpoint& checkpoint, const StoredChecksum& checksum,
                       const std::string& found, std::uint64_t size) {
  Finding finding{.check = std::string(kCheck),
                  .status = Status::kFail,
                  .cause = Cause{.kind = CauseKind::kBitrot, .component = {}},
                  .subject = checksum.subject,
                  .message = {},
                  .evidence = {{"algorithm", std::string(checksum.algorithm)},
                               {"found", found},
                               {"expected", checksum.expected},
                               {"size", std::to_string(size)}}};
  std::string place = "";
  if (!checksum.entry.empty()) {
    finding.evidence.push_back({"entry", checksum.entry});
  } else if (checksum.run.file < checkpoint.files.size()) {
    place = "byte " + std::to_string(checksum.run.offset) + ": ";
    finding.evidence.push_back({"file", checkpoint.files[checksum.run.file].name()});
    finding.evidence.push_back({"offset", std::to_string(checksum.run.offset)});
  }
  finding.message = checksum.subject + ": " + place + "the " + std::string(checksum.algorithm) +
                    " of " + std::to_string(size) + " bytes is wrong; found " + found +
                    ", expected " + checksum.expected;
  return finding;
}

/// Nothing if the checksum is right.
std::optional<Finding> verify(const Checkpoint& checkpoint, const StoredChecksum& checksum) {
  auto bytes = covered_bytes(checkpoint, checksum);
  if (!bytes) {
    return finding_of(std::move(bytes).error().about(checksum.subject), std::string(kCheck));
  }
  const std::string found = checksum.compute(bytes->view());
  if (found == checksum.expected) return std::nullopt;
  return wrong_checksum(checkpoint, checksum, found, bytes->view().size());
}

Finding right_checksums(const std::map<std::string_view, std::uint64_t>& right,
                        std::size_t checksum_count) {
  Finding finding{.check = std::string(kCheck), .message = {}};
  std::uint64_t right_count = 0;
  std::string algorithms;
  for (const auto& [algorithm, count] : right) {
    right_count += count;
    algorithms += (algorithms.empty() ? "" : ", ") + std::string(algorithm);
    finding.evidence.push_back({std::string(algorithm), std::to_string(count)});
  }
  finding.message = std::to_string(right_count) + " of " + std::to_string(checksum_count) +
                    " stored checksums are right, by " + algorithms;
  return finding;
}

}  // namespace

std::vector<Finding> verify_checksums(const Checkpoint& checkpoint, Threads threads) {
  const std::vector<StoredChecksum>& checksums = checkpoint.checksums;
  if (checksums.empty()) {
    return {{.check = std::string(kCheck),
             .status = Status::kNotObserved,
             .message = "the checkpoint carries no checksums"}};
  }
  std::vector<std::optional<Finding>> wrong(checksums.size());
  for_each_index(checksums.size(), threads,
                 [&](std::size_t i) { wrong[i] = verify(checkpoint, checksums[i]); });
  std::vector<Finding> findings;
  std::map<std::string_view, std::uint64_t> right;
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    if (wrong[i]) {
      findings.push_back(std::move(*wrong[i]));
    } else {
      ++right[checksums[i].algorithm];
    }
  }
  if (!right.empty()) findings.push_back(right_checksums(right, checksums.size()));
  return findings;
}

}  // namespace ckptverify
