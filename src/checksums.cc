// Verification of the digests that a checkpoint stores over runs of its own bytes.
#include "src/checksums.h"

#include <map>

#include "ckptverify/count_text.h"

namespace ckptverify {
namespace {

constexpr std::string_view kCheck = "static.checksums";

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
std::optional<Finding> judge(const Checkpoint& checkpoint, const StoredChecksum& checksum,
                             const Result<FoundChecksum>& found) {
  if (!found) return finding_of(Error(found.error()).about(checksum.subject), std::string(kCheck));
  if (found->text == checksum.expected) return std::nullopt;
  return wrong_checksum(checkpoint, checksum, found->text, found->size);
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
  finding.message =
      std::to_string(right_count) + " of " +
      count_text(checksum_count, "stored checksum is right", "stored checksums are right") +
      ", by " + algorithms;
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
  for (std::size_t i = 0; i < checksums.size(); ++i) {
    if (auto wrong = judge(checkpoint, checksums[i], pass.checksums[i])) {
      findings.push_back(std::move(*wrong));
    } else {
      ++right[checksums[i].algorithm];
    }
  }
  if (!right.empty()) findings.push_back(right_checksums(right, checksums.size()));
  return findings;
}

std::vector<Finding> verify_checksums(const Checkpoint& checkpoint, Threads threads) {
  return checksum_findings(checkpoint,
                           pass_over_bytes(checkpoint, {.checksums = true, .threads = threads}));
}

}  // namespace ckptverify
