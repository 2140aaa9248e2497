// Why a report's verdict is what it is, where the resumed run first parted, and what a person does
// next: the same words for every rendering.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/report.h"

namespace ckptverify {

/// The check that decided: of a fail the first one that names the first cause; of an inconclusive
/// report what broke the gate off, else the first check that could not tell. Null for a pass.
const Finding* deciding_check(const Report& report);

/// One or two sentences for every verdict. What a fail's says is the remedy of its first cause.
std::string next_step(const Report& report);

/// Where the resumed run left the reference.
struct Parting {
  std::string metric = {};
  std::uint64_t step = 0;
  std::string found = {};
  std::string expected = {};
};

/// Of each metric whose trajectory check failed and whose curves differ; the first step first.
std::vector<Parting> partings(const Report& report);

/// "lr at step 6: found 0.00075, expected 0.00268416".
std::string parting_text(const Parting& parting);

/// The shortest texts, of six digits or more, by which two different numbers can be told apart.
std::pair<std::string, std::string> distinct_figures(double found, double expected);

/// A sentence of the form "what is wrong: found X, expected Y; more".
struct FoundExpected {
  std::string before = {};
  std::string found = {};
  std::string expected = {};
  std::string after = {};  // empty, or what follows the semicolon
};

std::optional<FoundExpected> found_expected(std::string_view message);

}  // namespace ckptverify
