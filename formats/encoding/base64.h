// Base64, RFC 4648 section 4: bytes as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace ckptverify {

/// Nothing for text that is none: another character, a wrong length, bits set in the padding.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace ckptverify
