// A tar archive (ustar) as named byte ranges: a header of 512 bytes with a checksum, the member's
// bytes, zeros up to the next 512; two blocks of zeros at the end, and more of them up to the
// writer's own block size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/coverage.h"
#include "ckptverify/finding.h"
#include "ckptverify/result.h"

namespace ckptverify {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  // of its bytes
  std::uint64_t size = 0;
};

struct TarArchive {
  std::vector<TarMember> members;   // regular files
  std::vector<OwnedRange> framing;  // all that is no member's bytes; of file 0
  std::vector<Finding> findings;
};

/// Errors: a header whose checksum is wrong (bitrot), a member or an end that is not there (trunc),
/// members of one name (layout), sizes beyond octal digits (unsupported).
Result<TarArchive> read_tar(Bytes bytes);

/// The name in the first header, which is there before the archive is whole; empty if there is
/// none.
std::string_view first_tar_name(Bytes bytes);

}  // namespace ckptverify
