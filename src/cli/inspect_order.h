// The order in which people count: digits are one number, so that "layers.9" comes before
// "layers.10", and a dot ends a name.
#pragma once

#include <cstdint>
#include <string_view>

namespace ckptverify::cli {

bool natural_less(std::string_view a, std::string_view b);

/// The beginning of a text as a number: of two texts, the one with the smaller number is the
/// smaller; of equal numbers natural_less() tells.
std::uint64_t natural_prefix(std::string_view text);

}  // namespace ckptverify::cli
