// Runs a body for every index of a flat work list on a few threads. Indices are handed out in order
// by one atomic counter, so the caller puts the longest work first. The body must not throw.
#pragma once

#include <cstddef>
#include <functional>

#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// Returns when body(0), ..., body(count - 1) have all returned. The calling thread works too.
void for_each_index(std::size_t count, Threads threads,
                    const std::function<void(std::size_t index)>& body);

}  // namespace ckptverify
