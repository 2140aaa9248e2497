// How --help shows options: what is to be typed, and the default in words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace ckptverify::cli {

/// `--threads N`, `--digest ckv1|sha256`, `... (default: standard)`. Subcommands that are added
/// later inherit it.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace ckptverify::cli
