// NumPy arrays and scalars, and Python's bytes, as pickles write them: calls with the bytes inside.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ckptverify/checkpoint.h"
#include "ckptverify/result.h"
#include "formats/encoding/pickle.h"

namespace ckptverify {

/// bytes in any of their spellings: an operand of protocol 3 and later, a bytearray,
/// _codecs.encode(text, 'latin1') or bytes() of protocol 2. Nothing for what is none.
std::optional<std::vector<std::byte>> bytes_of(const PickleNode& node);

bool is_numpy_array(const PickleNode& node);
bool is_numpy_scalar(const PickleNode& node);

/// A Tensor whose bytes the pickle holds; Opaque for strings, records, times and objects.
Result<Node> numpy_array(const PickleNode& node);
/// The Python value; a Composite for complex numbers; Opaque for what has none.
Result<Node> numpy_scalar(const PickleNode& node);

}  // namespace ckptverify
