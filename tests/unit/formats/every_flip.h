// Two promises of every reader, tried on every byte of a small good file. Cut anywhere, the file is
// refused. Changed anywhere, the change is refused, reported, or changes the fingerprint, unless
// the reader itself says that nothing protects that byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ckptverify/check.h"
#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify::testing {

/// The reader under test, on the whole bytes of its one file.
using ReadBytes = std::function<Result<Checkpoint>(std::vector<std::byte>)>;

inline bool is_bad(const Finding& finding) {
  return finding.status == Status::kFail || finding.status == Status::kInconclusive;
}

/// Whether reading or checking says that something is wrong.
inline bool is_reported(const Result<Checkpoint>& checkpoint) {
  if (!checkpoint) return true;
  const auto findings = check_checkpoint(*checkpoint, {.threads = {1}});
  return std::any_of(findings.begin(), findings.end(), is_bad) ||
         std::any_of(checkpoint->findings.begin(), checkpoint->findings.end(), is_bad);
}

/// The claim on a byte of file 0.
inline std::optional<OwnedRange> owner_of(const Checkpoint& checkpoint, std::uint64_t offset) {
  for (const OwnedRange& claim : checkpoint.coverage.sorted()) {
    if (claim.range.file == 0 && offset >= claim.range.offset &&
        offset - claim.range.offset < claim.range.size) {
      return claim;
    }
  }
  return std::nullopt;
}

inline void expect_every_flip_noticed(const std::vector<std::byte>& good, const ReadBytes& read) {
  const auto original = read(good);
  ASSERT_TRUE(original) << original.error().text();
  ASSERT_FALSE(is_reported(original)) << "the good file is not good";
  const auto before = fingerprint(*original, {1});
  ASSERT_TRUE(before);
  for (std::size_t i = 0; i < good.size(); ++i) {
    const auto claim = owner_of(*original, i);
    if (claim && claim->owner == Owner::kUnverifiable) continue;
    for (const std::byte mask : {std::byte{1} << (i % 8), std::byte{0xff}}) {
      auto bad = good;
      bad[i] ^= mask;
      const auto checkpoint = read(std::move(bad));
      if (is_reported(checkpoint)) continue;
      const auto after = fingerprint(*checkpoint, {1});
      EXPECT_TRUE(!after || after->whole != before->whole)
          << "byte " << i << " xor " << std::to_integer<int>(mask) << " is not noticed; it is "
          << (claim ? std::string(owner_name(claim->owner)) + ", " + claim->label : "nobody's");
    }
  }
}

inline void expect_every_prefix_refused(const std::vector<std::byte>& good, const ReadBytes& read) {
  ASSERT_FALSE(is_reported(read(good))) << "the good file is not good";
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto checkpoint = read({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_TRUE(is_reported(checkpoint)) << "the first " << size << " bytes pass for the whole";
  }
}

}  // namespace ckptverify::testing
