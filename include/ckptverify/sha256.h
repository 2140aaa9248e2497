// SHA-256 (FIPS 180-4) of plain bytes: what other tools print for the same tensor or file.
#pragma once

#include <string>

#include "ckptverify/bytes.h"

namespace ckptverify {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(Bytes bytes);

}  // namespace ckptverify
