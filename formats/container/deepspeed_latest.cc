// Source: deepspeed/runtime/engine.py (save_checkpoint, load_checkpoint).
#include "formats/container/deepspeed_latest.h"

#include <algorithm>
#include <utility>

#include "formats/container/deepspeed_names.h"
#include "formats/container/directory_names.h"

namespace ckptverify {
namespace {

Finding finding(const Source& directory, Status status, std::string message) {
  Finding finding{.check = "static.container",
                  .status = status,
                  .subject = std::string(kDeepspeedLatest),
                  .message = directory.name() + ": " + std::move(message)};
  if (status == Status::kFail) finding.cause = Cause{CauseKind::kUncommitted, {}};
  return finding;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

}  // namespace

DeepspeedChoice choose_deepspeed_tag(const Source& directory) {
  constexpr std::size_t kTagBytesMax = 4096;  // PATH_MAX
  const std::vector<std::string> tags = deepspeed_tags(directory);
  DeepspeedChoice choice;
  const auto latest = directory.has_member(kDeepspeedLatest)
                          ? directory.member(kDeepspeedLatest)
                          : Result<Source>(Error{.message = "there is no file 'latest'"});
  if (!latest) {
    if (!tags.empty()) choice.tag = tags.back();
    choice.findings.push_back(
        finding(directory, Status::kWarn,
                "no file 'latest', which is written last; expected the name of a tag"));
    return choice;
  }
  const std::string tag =
      trimmed(as_text(latest->bytes().first(std::min(latest->bytes().size(), kTagBytesMax))));
  const auto shown = tag.empty() ? std::string("nothing") : "'" + tag + "'";
  if (std::find(tags.begin(), tags.end(), tag) == tags.end()) {
    choice.findings.push_back(finding(directory, Status::kFail,
                                      "'latest' names no checkpoint that is there; found " + shown +
                                          ", expected one of " + std::to_string(tags.size()) +
                                          " tags"));
    return choice;
  }
  if (natural_less(tag, tags.back()))
    choice.findings.push_back(finding(directory, Status::kWarn,
                                      "'latest' does not name the last tag; found " + shown +
                                          ", and '" + tags.back() + "' is there"));
  choice.tag = tag;
  return choice;
}

}  // namespace ckptverify
