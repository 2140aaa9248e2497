// `ckptverify inspect`: what is in a checkpoint, by component, without its writer.
#include "src/cli/inspect.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "ckptverify/path_pattern.h"
#include "ckptverify/sha256.h"
#include "src/cli/collection_output.h"
#include "src/cli/inspect_output.h"
#include "src/cli/progress.h"

namespace ckptverify::cli {
namespace {

// Elements that --print shows unless told otherwise: a screenful.
constexpr std::uint64_t kPrintedElements = 200;

struct InspectOptions {
  CommonOptions common;
  std::string checkpoint;
  std::string digest;  // "", "ckv1" or "sha256"
  std::string component;
  std::string filter;
  std::string tensor;
  std::uint64_t limit = kPrintedElements;
  bool stats = false;
  bool print = false;

  /// Whether the bytes of tensors are asked for, and not their names and shapes alone.
  bool needs_bytes() const { return !digest.empty() || stats || print; }
};

Result<void> check_usage(const InspectOptions& options) {
  if (options.print && options.tensor.empty()) {
    return Error{ErrorKind::kUsage, "found no --tensor PATH, expected the tensor to print",
                 "--print"};
  }
  if (options.component.empty()) return {};
  const std::string name = options.component.substr(0, options.component.find('.'));
  if (component_named(name)) return {};
  std::string known;
  for (const Component each : components()) known += " " + std::string(component_name(each));
  return Error{ErrorKind::kUsage, "found '" + options.component + "', expected one of" + known,
               "--component"};
}

/// The entries that the options ask for.
Result<std::vector<ShownEntry>> select(const Checkpoint& checkpoint,
                                       const InspectOptions& options) {
  std::optional<PathPattern> pattern;
  if (!options.filter.empty()) {
    CKPTVERIFY_TRY(pattern, PathPattern::guess(options.filter));
  }
  std::vector<ShownEntry> shown;
  const bool all = !pattern && options.component.empty() && options.tensor.empty();
  if (all) shown.reserve(checkpoint.entries.size());
  for (const Entry& entry : checkpoint.entries) {
    if (!options.component.empty() && component_label(entry) != options.component &&
        component_name(entry.component) != options.component) {
      continue;
    }
    if (!options.tensor.empty() && entry.path != options.tensor) continue;
    if (pattern) {
      CKPTVERIFY_TRY(const bool found, pattern->found_in(entry.path));
      if (!found) continue;
    }
    shown.emplace_back().entry = &entry;
  }
  if (!options.tensor.empty() && shown.empty()) {
    return Error{ErrorKind::kUsage, "no entry has this path; inspect without --tensor lists them",
                 options.tensor};
  }
  return shown;
}

Result<void> add_fingerprints(const Checkpoint& checkpoint, Threads threads,
                              std::vector<ShownEntry>& shown) {
  CKPTVERIFY_TRY(const Fingerprint all, fingerprint(checkpoint, threads));
  for (ShownEntry& one : shown) {
    const auto index = static_cast<std::size_t>(one.entry - checkpoint.entries.data());
    if (all.entries[index]) one.digest = all.entries[index]->text();
  }
  return {};
}

/// What is asked of the tensors one by one.
Result<void> add_details(const Checkpoint& checkpoint, const InspectOptions& options,
                         Threads threads, std::vector<ShownEntry>& shown) {
  for (ShownEntry& one : shown) {
    const auto* tensor = std::get_if<Tensor>(&one.entry->node);
    if (tensor == nullptr || tensor->absent) continue;
    if (options.digest == "sha256") {
      auto bytes = logical_bytes(checkpoint, *tensor);
      if (!bytes) return std::move(bytes).error().about(one.entry->path);
      one.digest = "sha256:" + sha256_hex(bytes->view());
    }
    if (options.stats) {
      auto found = statistics(checkpoint, *tensor, threads);
      if (!found) return std::move(found).error().about(one.entry->path);
      one.statistics = std::make_unique<const Statistics>(*found);
    }
  }
  return {};
}

Result<std::vector<ShownEntry>> shown_entries(const Checkpoint& checkpoint,
                                              const InspectOptions& options) {
  CKPTVERIFY_TRY(std::vector<ShownEntry> shown, select(checkpoint, options));
  if (!options.needs_bytes()) return shown;
  Progress progress("reading", bytes_of_files(checkpoint));
  Threads threads{options.common.threads, progress.bytes_read()};
  if (options.digest == "ckv1") {
    CKPTVERIFY_TRY_VOID(add_fingerprints(checkpoint, threads, shown));
  }
  CKPTVERIFY_TRY_VOID(add_details(checkpoint, options, threads, shown));
  return shown;
}

Result<void> show(const Checkpoint& checkpoint, const InspectOptions& options) {
  CKPTVERIFY_TRY(const std::vector<ShownEntry> shown, shown_entries(checkpoint, options));
  if (options.common.output() == Output::kText) {
    if (options.print) return print_values(checkpoint, *shown.front().entry, options.limit);
    print_tree(checkpoint, shown);
    return {};
  }
  std::optional<Json> elements;
  if (options.print) {
    CKPTVERIFY_TRY(elements, values_json(checkpoint, *shown.front().entry, options.limit));
  }
  write_inspect_json(std::cout, checkpoint, shown, elements);
  return {};
}

Result<int> run_inspect(const InspectOptions& options) {
  CKPTVERIFY_TRY_VOID(check_usage(options));
  CKPTVERIFY_TRY(const Source source, Source::open(options.checkpoint));
  CKPTVERIFY_TRY(const bool folder, show_collection(source, options.common.output()));
  if (folder) return kExitPass;
  const Depth depth = options.needs_bytes() ? Depth::kWhole : Depth::kListing;
  CKPTVERIFY_TRY(const Checkpoint checkpoint, read_checkpoint(source, depth));
  if (auto done = show(checkpoint, options); !done) {
    return in_checkpoint(options.checkpoint, std::move(done).error());
  }
  return checkpoint.uninterpreted.empty() ? kExitPass : kExitInconclusive;
}

}  // namespace

void add_inspect(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "inspect", "Show what is in a checkpoint: tensors, values, components");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("checkpoint", options->checkpoint, "File or directory")->required();
  command->add_option("--component", options->component,
                      "Only this component, such as optimizer or rng.1");
  command->add_option("--filter", options->filter,
                      "Only paths in which this expression is found, or that match this glob");
  command->add_flag("--stats", options->stats, "Min, max, mean, NaN, Inf and zeros a tensor");
  command
      ->add_option("--digest", options->digest, "Digest every entry: ckv1, or sha256 of the bytes")
      ->check(CLI::IsMember({"ckv1", "sha256"}));
  command->add_option("--tensor", options->tensor, "Only the entry with this path");
  command->add_flag("--print", options->print, "The tensor's elements, with their indices");
  command->add_option("--limit", options->limit, "Elements to print; 0 is all")
      ->capture_default_str();
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Exit codes: 0 done, 1 malformed, 2 not all of it was interpreted, 64 wrong usage,\n"
      "66 cannot be opened.\n"
      "Examples: ckptverify inspect checkpoints/step-1000\n"
      "          ckptverify inspect model.pt --component optimizer\n"
      "          ckptverify inspect model.pt --filter 'layers.*.bias' --stats\n"
      "          ckptverify inspect model.pt --tensor model.wte.weight --print --limit 20\n"
      "          ckptverify inspect model.safetensors --digest sha256 --json");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_inspect(*options), "inspect", options->common.output());
  });
}

}  // namespace ckptverify::cli
