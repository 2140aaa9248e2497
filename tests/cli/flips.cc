// Reads a checkpoint once for every bit that it is told to flip, in memory, and says what `check`
// would: flips CHECKPOINT < lines of "MEMBER OFFSET BIT" (MEMBER is "." for a single file). A line
// each on the output: "reported", "unverifiable" (listed so, whether reported or not), "changed" (a
// clean verdict, another fingerprint) or "silent". Exit 1 if the checkpoint as it is is not clean.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/check.h"
#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"
#include "ckptverify/source.h"
#include "formats/formats.h"

namespace ckptverify {
namespace {

using Members = std::map<std::string, std::vector<std::byte>>;

constexpr std::string_view kSingle = ".";

struct Flip {
  std::string member;
  std::size_t offset = 0;
  unsigned bit = 0;
};

Result<Members> members_of(const std::string& path) {
  CKPTVERIFY_TRY(const Source source, Source::open(path));
  Members members;
  if (!source.is_directory()) {
    members[std::string(kSingle)].assign(source.bytes().begin(), source.bytes().end());
    return members;
  }
  for (const std::string& name : source.members()) {
    CKPTVERIFY_TRY(const Source member, source.member(name));
    members[name].assign(member.bytes().begin(), member.bytes().end());
  }
  return members;
}

Result<Checkpoint> read(const Members& members, const std::string& name) {
  const auto single = members.find(std::string(kSingle));
  return formats().read(single != members.end() ? Source::memory(name, single->second)
                                                : Source::memory_directory(name, members));
}

bool is_bad(const Finding& finding) {
  return finding.status == Status::kFail || finding.status == Status::kInconclusive;
}

bool is_clean(const Result<Checkpoint>& checkpoint) {
  if (!checkpoint) return false;
  const std::vector<Finding> findings = check_checkpoint(*checkpoint, {.threads = {1}});
  return std::none_of(findings.begin(), findings.end(), is_bad);
}

bool is_unverifiable(const Checkpoint& checkpoint, const std::vector<OwnedRange>& claims,
                     const Flip& flip) {
  return std::any_of(claims.begin(), claims.end(), [&](const OwnedRange& claim) {
    const std::string& name = checkpoint.files[claim.range.file].name();
    return claim.owner == Owner::kUnverifiable && flip.offset >= claim.range.offset &&
           flip.offset - claim.range.offset < claim.range.size &&
           (flip.member == kSingle || flip.member == name);
  });
}

std::string_view outcome(Members& members, const std::string& name, const Flip& flip,
                         const std::optional<Digest>& before) {
  std::byte& byte = members[flip.member][flip.offset];
  const std::byte mask = std::byte{1} << flip.bit;
  byte ^= mask;
  const Result<Checkpoint> checkpoint = read(members, name);
  byte ^= mask;
  if (!is_clean(checkpoint)) return "reported";
  const auto after = fingerprint(*checkpoint, {1});
  return after && before && after->whole == *before ? "silent" : "changed";
}

int run(const std::string& path) {
  Result<Members> members = members_of(path);
  if (!members) {
    std::cerr << members.error().text() << '\n';
    return 1;
  }
  const std::string name = std::filesystem::path(path).filename();
  const Result<Checkpoint> original = read(*members, name);
  if (!is_clean(original)) {
    std::cerr << path << ": is not clean before any flip\n";
    return 1;
  }
  const auto before = fingerprint(*original, {1});
  const std::vector<OwnedRange> claims = original->coverage.sorted();
  Flip flip;
  while (std::cin >> flip.member >> flip.offset >> flip.bit) {
    if (flip.bit > 7 || members->count(flip.member) == 0 ||
        flip.offset >= members->at(flip.member).size()) {
      std::cerr << flip.member << " has no bit " << flip.bit << " of byte " << flip.offset << '\n';
      return 1;
    }
    std::cout << (is_unverifiable(*original, claims, flip)
                      ? "unverifiable"
                      : outcome(*members, name, flip,
                                before ? std::optional(before->whole) : std::nullopt))
              << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace ckptverify

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: flips CHECKPOINT < flips\n";
    return 64;
  }
  return ckptverify::run(argv[1]);
}
