// `ckptverify hash`: the fingerprint of a checkpoint, of its components and tensors and, if asked
// for, a digest a file: a second digest of every byte, which takes half as long again.
#include "src/cli/hash.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "ckptverify/count_text.h"
#include "src/cli/progress.h"

namespace ckptverify::cli {
namespace {

struct HashOptions {
  CommonOptions common;
  std::string checkpoint;
  bool files = false;
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

Json files_json(const Checkpoint& checkpoint, const Hashes& hashes) {
  Json::Array files;
  for (std::size_t index = 0; index < checkpoint.files.size(); ++index) {
    const Source& file = checkpoint.files[index];
    Json::Object about = {{"name", file.name()}, {"bytes", std::uint64_t{file.bytes().size()}}};
    if (!hashes.files.empty()) about.emplace_back("digest", hashes.files[index].text());
    files.push_back(std::move(about));
  }
  return files;
}

Json hash_json(const Checkpoint& checkpoint, const Hashes& hashes) {
  Json::Array uninterpreted(checkpoint.uninterpreted.begin(), checkpoint.uninterpreted.end());
  Json json = Json::Object{{"schema", "ckptverify.hash/1"},
                           {"format", checkpoint.format},
                           {"fingerprint", hashes.fingerprint.whole.text()},
                           {"components", components_json(hashes.fingerprint)},
                           {"tensors", tensors_json(checkpoint, hashes.fingerprint)},
                           {"files", files_json(checkpoint, hashes)},
                           {"uninterpreted", std::move(uninterpreted)}};
  if (!hashes.damaged.empty()) json.set("damaged", damaged_json(hashes.damaged));
  return json;
}

void print_text(const Checkpoint& checkpoint, const Hashes& hashes) {
  std::cout << hashes.fingerprint.whole.text() << "  " << checkpoint.format << '\n';
  for (const auto& [label, component] : hashes.fingerprint.components) {
    std::cout << component.all.text() << "  " << label << "  ("
              << count_text(component.entry_count, "entry") << ", "
              << size_text(component.tensor_bytes) << " of tensors)\n";
  }
  for (std::size_t index = 0; index < hashes.files.size(); ++index) {
    const Source& file = checkpoint.files[index];
    std::cout << hashes.files[index].text() << "  file " << file.name() << "  ("
              << size_text(file.bytes().size()) << ")\n";
  }
  for (const std::string& what : checkpoint.uninterpreted) {
    std::cout << "not interpreted, not in the fingerprint: " << plain_text(what) << '\n';
  }
  print_damaged(hashes.damaged);
}

Result<Hashes> hash_with_progress(const Checkpoint& checkpoint, const HashOptions& options) {
  Progress progress("hashing", bytes_of_files(checkpoint));
  const Threads threads = {options.common.threads, progress.bytes_read()};
  auto hashes =
      hash_checkpoint(checkpoint, options.files ? FileDigests::kYes : FileDigests::kNo, threads);
  if (!hashes) return in_checkpoint(options.checkpoint, std::move(hashes).error());
  return hashes;
}

Result<int> run_hash(const HashOptions& options) {
  CKPTVERIFY_TRY(const Checkpoint checkpoint, read_checkpoint(options.checkpoint));
  CKPTVERIFY_TRY(const Hashes hashes, hash_with_progress(checkpoint, options));
  if (options.common.output() == Output::kText) {
    print_text(checkpoint, hashes);
  } else {
    print_json(hash_json(checkpoint, hashes));
  }
  return code_of_reading(checkpoint, hashes.damaged);
}

}  // namespace

void add_hash(CLI::App& application, int& exit_code) {
  CLI::App* command =
      application.add_subcommand("hash", "Fingerprint a checkpoint, its components and tensors");
  auto options = std::make_shared<HashOptions>();
  command->add_option("checkpoint", options->checkpoint, "File or directory")->required();
  command->add_flag("--files", options->files,
                    "A digest of each file's bytes as they are, too (half as long again)");
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "The fingerprint depends on the state alone: not on the format, the sharding or the "
      "machine.\n"
      "A file's digest is of its bytes as they are. Both are defined in docs/fingerprint.md.\n"
      "Stored checksums are verified on the way: where one is wrong, the fingerprint is of "
      "damaged\n"
      "bytes, which is said, and the exit code is 1.\n"
      "Exit codes: 0 done, 1 malformed or damaged, 2 not all of it was interpreted, 64 wrong "
      "usage,\n"
      "66 cannot be opened.\n"
      "Examples: ckptverify hash checkpoints/step-1000\n"
      "          ckptverify hash model.safetensors --json --threads 1\n"
      "          ckptverify hash checkpoints/step-1000 --files > before-the-copy.txt");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_hash(*options), "hash", options->common.output());
  });
}

}  // namespace ckptverify::cli
