// The static checks, each a function from the checkpoint to its findings. None of them looks at
// another's outcome, so that one fault hides no other.
#include "ckptverify/check.h"

#include <algorithm>
#include <array>
#include <map>

#include "ckptverify/count_text.h"
#include "src/byte_pass.h"
#include "src/checkpoint_fingerprint.h"
#include "src/checksums.h"
#include "src/component_findings.h"
#include "src/finite.h"

namespace ckptverify {
namespace {

// Ranges and names in one finding: enough to see a pattern, few enough to read.
constexpr std::size_t kShownMax = 8;

constexpr std::array kOwners = {Owner::kTensor, Owner::kMetadata, Owner::kFraming, Owner::kPadding,
                                Owner::kUnverifiable};

Cause cause_of(CauseKind kind) {
  return {.kind = kind, .component = {}};
}

std::string file_name(const Checkpoint& checkpoint, std::uint32_t file) {
  return file < checkpoint.files.size() ? checkpoint.files[file].name()
                                        : "file " + std::to_string(file);
}

std::string range_text(const Checkpoint& checkpoint, const ByteRange& range) {
  return file_name(checkpoint, range.file) + ": byte " + std::to_string(range.offset) + ", " +
         count_text(range.size, "byte");
}

std::vector<std::uint64_t> file_sizes(const Checkpoint& checkpoint) {
  std::vector<std::uint64_t> sizes;
  for (const Source& file : checkpoint.files) sizes.push_back(file.bytes().size());
  return sizes;
}

Finding readable(const Checkpoint& checkpoint) {
  std::uint64_t bytes = 0;
  for (const std::uint64_t size : file_sizes(checkpoint)) bytes += size;
  return {.check = "static.readable",
          .message = "read as " + checkpoint.format + ": " +
                     count_text(checkpoint.entries.size(), "entry") + " in " +
                     count_text(bytes, "byte") + " of " +
                     count_text(checkpoint.files.size(), "file"),
          .evidence = {{"format", checkpoint.format},
                       {"entries", std::to_string(checkpoint.entries.size())},
                       {"bytes", std::to_string(bytes)},
                       {"files", std::to_string(checkpoint.files.size())}}};
}

Evidence range_evidence(const Checkpoint& checkpoint, const ByteRange& range,
                        std::string_view name) {
  return {std::string(name), range_text(checkpoint, range)};
}

Finding gap_finding(const Checkpoint& checkpoint, const std::vector<ByteRange>& gaps) {
  std::uint64_t bytes = 0;
  for (const ByteRange& gap : gaps) bytes += gap.size;
  const ByteRange& first = gaps.front();
  Finding finding{.check = "static.coverage",
                  .status = Status::kFail,
                  .cause = cause_of(CauseKind::kLayout),
                  .subject = file_name(checkpoint, first.file),
                  .message = file_name(checkpoint, first.file) + ": byte " +
                             std::to_string(first.offset) + ": " +
                             count_text(first.size, "byte belongs", "bytes belong") +
                             " to nothing; found " + count_text(bytes, "such byte") + " in " +
                             count_text(gaps.size(), "range") + ", expected 0",
                  .evidence = {{"file", file_name(checkpoint, first.file)},
                               {"offset", std::to_string(first.offset)},
                               {"size", std::to_string(first.size)}}};
  for (std::size_t i = 0; i < std::min(gaps.size(), kShownMax); ++i) {
    finding.evidence.push_back(range_evidence(checkpoint, gaps[i], "unowned"));
  }
  return finding;
}

Finding overlap_finding(const Checkpoint& checkpoint, const std::vector<Overlap>& overlaps) {
  const Overlap& first = overlaps.front();
  const std::string file = file_name(checkpoint, first.second.range.file);
  Finding finding{.check = "static.coverage",
                  .status = Status::kFail,
                  .cause = cause_of(CauseKind::kLayout),
                  .subject = file,
                  .message = file + ": byte " + std::to_string(first.second.range.offset) + ": " +
                             first.second.label + " begins inside " + first.first.label +
                             "; found " + count_text(overlaps.size(), "overlap") + ", expected 0",
                  .evidence = {{"file", file},
                               {"offset", std::to_string(first.second.range.offset)},
                               {"size", std::to_string(first.second.range.size)}}};
  for (std::size_t i = 0; i < std::min(overlaps.size(), kShownMax); ++i) {
    for (const OwnedRange* owned : {&overlaps[i].first, &overlaps[i].second}) {
      finding.evidence.push_back(range_evidence(checkpoint, owned->range, owned->label));
    }
  }
  return finding;
}

std::vector<Finding> coverage(const Checkpoint& checkpoint, const SortedClaims& claims) {
  std::vector<Finding> findings;
  const auto gaps = claims.gaps(file_sizes(checkpoint));
  const auto overlaps = claims.overlaps();
  if (!gaps.empty()) findings.push_back(gap_finding(checkpoint, gaps));
  if (!overlaps.empty()) findings.push_back(overlap_finding(checkpoint, overlaps));
  if (!findings.empty()) return findings;
  Finding pass{.check = "static.coverage", .message = "every byte has exactly one owner"};
  for (const Owner owner : kOwners) {
    pass.evidence.push_back({std::string(owner_name(owner)), std::to_string(claims.size(owner))});
  }
  return {std::move(pass)};
}

/// All ranges of one label: a zip archive has its few idle bytes once a member.
struct SameLabel {
  ByteRange first;
  std::uint64_t bytes = 0;
  std::uint64_t ranges = 0;
};

std::string same_text(const Checkpoint& checkpoint, const SameLabel& same) {
  std::string first = range_text(checkpoint, same.first);
  if (same.ranges == 1) return first;
  return count_text(same.bytes, "byte") + " in " + count_text(same.ranges, "place") +
         ", the first at " + first;
}

std::vector<Finding> unverifiable(const Checkpoint& checkpoint, const SortedClaims& claims) {
  const std::uint64_t bytes = claims.size(Owner::kUnverifiable);
  if (bytes == 0) {
    return {{.check = "static.unverifiable", .message = "every byte means something"}};
  }
  Finding finding{
      .check = "static.unverifiable",
      .status = Status::kWarn,
      .message = count_text(bytes, "byte means nothing or is", "bytes mean nothing or are") +
                 " protected by nothing: damage there is not seen",
      .evidence = {{"bytes", std::to_string(bytes)}}};
  std::map<std::string_view, SameLabel> labels;
  for (std::size_t i = 0; i < claims.count(); ++i) {
    const OwnedRange& owned = claims[i];
    if (owned.owner != Owner::kUnverifiable) continue;
    SameLabel& same =
        labels.try_emplace(owned.label, SameLabel{.first = owned.range}).first->second;
    same.bytes += owned.range.size;
    ++same.ranges;
  }
  for (const auto& [label, same] : labels) {
    if (finding.evidence.size() > kShownMax) {
      finding.evidence.push_back({"and", count_text(labels.size() - kShownMax, "more kind")});
      break;
    }
    finding.evidence.push_back({std::string(label), same_text(checkpoint, same)});
  }
  return {std::move(finding)};
}

void collect_opaque(const Node& node, std::map<std::string, std::uint64_t>& types) {
  if (const auto* opaque = std::get_if<Opaque>(&node)) ++types[opaque->type];
  if (const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&node)) {
    for (const auto& [name, part] : (*composite)->parts) collect_opaque(part, types);
  }
}

/// A reader that found parts missing: what is left is not the checkpoint.
bool lacks_parts(const Checkpoint& checkpoint) {
  return std::any_of(checkpoint.findings.begin(), checkpoint.findings.end(),
                     [](const Finding& finding) {
                       return finding.status == Status::kFail && finding.cause &&
                              finding.cause->kind == CauseKind::kShardMissing;
                     });
}

std::vector<Finding> interpreted(const Checkpoint& checkpoint) {
  std::vector<Finding> findings;
  if (!checkpoint.uninterpreted.empty()) {
    Finding finding{.check = "static.interpreted",
                    .status = Status::kInconclusive,
                    .subject = checkpoint.uninterpreted.front(),
                    .message = count_text(checkpoint.uninterpreted.size(), "part") +
                               " could not be interpreted, the first is " +
                               checkpoint.uninterpreted.front()};
    for (const std::string& what : checkpoint.uninterpreted) {
      if (finding.evidence.size() == kShownMax) break;
      finding.evidence.push_back({"uninterpreted", what});
    }
    findings.push_back(std::move(finding));
  }
  std::map<std::string, std::uint64_t> types;
  for (const Entry& entry : checkpoint.entries) collect_opaque(entry.node, types);
  if (!types.empty()) {
    Finding finding{.check = "static.interpreted", .status = Status::kWarn, .message = {}};
    std::uint64_t count = 0;
    for (const auto& [type, type_count] : types) {
      count += type_count;
      finding.evidence.push_back({type, std::to_string(type_count)});
    }
    finding.message = count_text(count, "object") + " of " + count_text(types.size(), "class") +
                      " not modelled: listed, not hashed";
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    findings.push_back({.check = "static.interpreted", .message = "everything was interpreted"});
    if (checkpoint.entries.empty() && lacks_parts(checkpoint)) {
      findings.back().status = Status::kNotObserved;
      findings.back().message = "nothing is there to be interpreted";
    }
  }
  return findings;
}

}  // namespace

CheckResult check_and_fingerprint(const Checkpoint& checkpoint, const CheckOptions& options) {
  const TensorsToRead read = tensors_to_read(checkpoint);
  const Pass pass = pass_over_bytes(
      checkpoint,
      {.tensors = read.tensors, .content = true, .checksums = true, .threads = options.threads});
  CheckResult result{.findings = {readable(checkpoint)}, .fingerprint = {}};
  const auto add = [&result](std::vector<Finding> more) {
    std::move(more.begin(), more.end(), std::back_inserter(result.findings));
  };
  add(interpreted(checkpoint));
  const SortedClaims claims(checkpoint.coverage);
  add(coverage(checkpoint, claims));
  add(unverifiable(checkpoint, claims));
  add(checksum_findings(checkpoint, pass));
  add(finite_findings(checkpoint, read, pass, options.not_finite));
  add(component_findings(checkpoint, options.required));
  add(checkpoint.findings);
  auto digests = fingerprint_of(checkpoint, read, pass);
  // Of what is left, or of nothing at all, it would be another state's.
  const bool any = digests && std::any_of(digests->entries.begin(), digests->entries.end(),
                                          [](const auto& digest) { return digest.has_value(); });
  if (any && !lacks_parts(checkpoint)) result.fingerprint = *std::move(digests);
  return result;
}

std::vector<Finding> check_checkpoint(const Checkpoint& checkpoint, const CheckOptions& options) {
  return check_and_fingerprint(checkpoint, options).findings;
}

}  // namespace ckptverify
