// `ckptverify formats`: the table of formats that this build reads.
#include "src/cli/formats.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "formats/formats.h"

namespace ckptverify::cli {
namespace {

void print_formats(Output output) {
  Json::Array rows;
  const FormatTable table = ckptverify::formats();
  for (const Format& format : table.rows()) {
    if (output == Output::kText) {
      std::cout << format.name << "\n    " << format.title << "\n    on disk: " << format.files
                << "\n    checksums: " << format.checksums << '\n';
    }
    rows.push_back(Json::Object{{"name", format.name},
                                {"title", format.title},
                                {"files", format.files},
                                {"checksums", format.checksums}});
  }
  if (output == Output::kJson) {
    print_json(Json::Object{{"schema", "ckptverify.formats/1"}, {"formats", std::move(rows)}});
  }
}

}  // namespace

void add_formats(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand("formats", "List the formats that are built in");
  auto options = std::make_shared<CommonOptions>();
  add_common_options(*command, *options, Bulk::kNo);
  command->footer("Example: ckptverify formats --json");
  command->callback([options, &exit_code] {
    print_formats(options->output());
    exit_code = kExitPass;
  });
}

}  // namespace ckptverify::cli
