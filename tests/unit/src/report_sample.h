// Reports of real gates, as `run --json` wrote them, for the tests of the renderings.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "src/report/json.h"

namespace ckptverify {

/// report_samples/NAME.json: "pass", "fail" or "inconclusive".
inline Report sample(const std::string& name) {
  const auto path =
      std::filesystem::path(CKPTVERIFY_SOURCE) / "tests/unit/src/report_samples" / name;
  std::ifstream stream(path.string() + ".json");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const auto json = Json::parse(text);
  if (!json) {
    ADD_FAILURE() << path;
    return {};
  }
  auto report = report_from_json(*json);
  EXPECT_TRUE(report) << path;
  return report ? *std::move(report) : Report{};
}

}  // namespace ckptverify
