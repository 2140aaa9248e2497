// A number and its noun, as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ckptverify {

/// "1 entry", "2 entries". Without `many` the noun gets a regular plural: files, entries,
/// processes.
std::string count_text(std::uint64_t count, std::string_view one, std::string_view many = {});

}  // namespace ckptverify
