// `ckptverify hash`: the fingerprint of a checkpoint, of its components and tensors, and a digest a
// file.
#include "src/cli/hash.h"

#include <iostream>
#include <memory>

namespace ckptverify::cli {
namespace {

struct HashOptions {
  CommonOptions common;
  std::string checkpoint;
};

Json components_json(const Fingerprint& fingerprint) {
  Json::Object components;
  for (const auto& [label, component] : fingerprint.components) {
    components.emplace_back(label, Json::Object{{"digest", component.all.text()},
                                                {"tensors", component.tensors.text()},
                                                {"entries", component.entry_count},
                                                {"tensor_bytes", component.tensor_bytes}});
  }
  return components;
}

Json tensors_json(const Checkpoint& checkpoint, const Fingerprint& fingerprint) {
  Json::Object tensors;
  for (std::size_t index = 0; index < checkpoint.entries.size(); ++index) {
    const Entry& entry = checkpoint.entries[index];
    if (std::holds_alternative<Tensor>(entry.node) && fingerprint.entries[index]) {
      tensors.emplace_back(entry.path, fingerprint.entries[index]->text());
    }
  }
  return tensors;
}

Json files_json(const Checkpoint& checkpoint) {
  Json::Array files;
  for (const Source& file : checkpoint.files) {
    files.push_back(Json::Object{{"name", file.name()},
                                 {"bytes", std::uint64_t{file.bytes().size()}},
                                 {"xxh3", hash_bytes(file.bytes()).hex()}});
  }
  return files;
}

void print_text(const Checkpoint& checkpoint, const Fingerprint& fingerprint) {
  std::cout << fingerprint.whole.text() << "  " << checkpoint.format << '\n';
  for (const auto& [label, component] : fingerprint.components) {
    std::cout << component.all.text() << "  " << label << "  (" << component.entry_count
              << " entries, " << size_text(component.tensor_bytes) << " of tensors)\n";
  }
  for (const Source& file : checkpoint.files) {
    std::cout << "xxh3:" << hash_bytes(file.bytes()).hex() << "  " << file.name() << "  ("
              << size_text(file.bytes().size()) << ")\n";
  }
  for (const std::string& what : checkpoint.uninterpreted) {
    std::cout << "not interpreted, not in the fingerprint: " << what << '\n';
  }
}

Result<int> run_hash(const HashOptions& options) {
  CKPTVERIFY_TRY(const Checkpoint checkpoint, read_checkpoint(options.checkpoint));
  CKPTVERIFY_TRY(const Fingerprint digests,
                 fingerprint(checkpoint, Threads{options.common.threads}));
  if (options.common.output() == Output::kText) {
    print_text(checkpoint, digests);
  } else {
    Json::Array uninterpreted(checkpoint.uninterpreted.begin(), checkpoint.uninterpreted.end());
    print_json(Json::Object{{"schema", "ckptverify.hash/1"},
                            {"format", checkpoint.format},
                            {"fingerprint", digests.whole.text()},
                            {"components", components_json(digests)},
                            {"tensors", tensors_json(checkpoint, digests)},
                            {"files", files_json(checkpoint)},
                            {"uninterpreted", std::move(uninterpreted)}});
  }
  return checkpoint.uninterpreted.empty() ? kExitPass : kExitInconclusive;
}

}  // namespace

void add_hash(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "hash", "Fingerprint a checkpoint, its components and tensors; digest its files");
  auto options = std::make_shared<HashOptions>();
  command->add_option("checkpoint", options->checkpoint, "File or directory")->required();
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "The fingerprint (ckv1:...) depends on the state alone: not on the format, the sharding or "
      "the\n"
      "machine. File digests (xxh3:...) are XXH3-128 over the bytes of each file.\n"
      "Examples: ckptverify hash checkpoints/step-1000\n"
      "          ckptverify hash model.safetensors --json");
  command->callback([options, &exit_code] {
    const Result<int> code = run_hash(*options);
    exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace ckptverify::cli
