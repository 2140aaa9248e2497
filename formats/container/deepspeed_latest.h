// Which of the tags in a directory of DeepSpeed's checkpoints a resume takes: the one that the file
// `latest` names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/finding.h"
#include "ckptverify/source.h"

namespace ckptverify {

inline constexpr std::string_view kDeepspeedLatest = "latest";

/// The tag, if there is one, and what is wrong with the choice.
struct DeepspeedChoice {
  std::optional<std::string> tag;
  std::vector<Finding> findings;
};

DeepspeedChoice choose_deepspeed_tag(const Source& directory);

}  // namespace ckptverify
