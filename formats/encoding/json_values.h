// A JSON document as the plain values of a state: objects and lists become paths, their leaves
// become values.
#pragma once

#include <string_view>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/json.h"
#include "ckptverify/result.h"

namespace ckptverify {

/// Appends the leaves below `value`; `path` is the path of `value` itself, empty for a root.
void append_json_values(const Json& value, const std::string& path, std::vector<Entry>& entries);

/// The leaves of a whole document, in its order. NaN, Infinity and -Infinity may stand for numbers,
/// as Python's json module writes them. Errors are Json::parse()'s.
Result<std::vector<Entry>> json_values(std::string_view text);

}  // namespace ckptverify
