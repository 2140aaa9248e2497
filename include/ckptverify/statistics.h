// What the elements of a tensor are like, for people: extremes, mean, and what is not a number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ckptverify/checkpoint.h"
#include "ckptverify/fingerprint.h"

namespace ckptverify {

/// Over numbers: a complex element and a packed one have two. The extremes and the mean are over
/// those that are finite, and absent where there are none.
struct Statistics {
  std::uint64_t count = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  std::optional<double> mean = {};
};

Result<Statistics> statistics(const Checkpoint& checkpoint, const Tensor& tensor, Threads threads);

/// One element for people: 0.5, -3, true, (1.0, -0.0) for a complex or packed one.
std::string element_text(DType dtype, Bytes element);

}  // namespace ckptverify
