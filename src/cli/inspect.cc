// `ckptverify inspect`: what is in a checkpoint, by component, without its writer.
#include "src/cli/inspect.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "ckptverify/count_text.h"
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

/// The name that the tree shows: the component, and the path inside it.
std::string shown_name(const Entry& entry) {
  return component_label(entry) + "." + std::string(relative_path(entry));
}

Error no_such_entry(const std::string& name) {
  return Error{ErrorKind::kUsage,
               "no entry has this path; expected one that inspect shows, as step or "
               "model.wte.weight, or a path as inspect --json lists them",
               name};
}

/// The entry of that path; else the one that the tree shows under that name; else the only one that
/// it shows below any component's.
Result<const Entry*> entry_named(const Checkpoint& checkpoint, const std::string& name) {
  const Entry* shown = nullptr;
  std::vector<const Entry*> inside;
  for (const Entry& entry : checkpoint.entries) {
    if (entry.path == name) return &entry;
    if (shown == nullptr && shown_name(entry) == name) shown = &entry;
    if (relative_path(entry) == name) inside.push_back(&entry);
  }
  if (shown != nullptr) return shown;
  if (inside.size() == 1) return inside.front();
  if (inside.empty()) return no_such_entry(name);
  return Error{ErrorKind::kUsage,
               "several entries have this name; found " + inside[0]->path + " and " +
                   inside[1]->path + ", expected one of them",
               name};
}

Error nothing_matches(const Checkpoint& checkpoint, const InspectOptions& options) {
  std::string found = count_text(checkpoint.entries.size(), "entry");
  if (!checkpoint.entries.empty()) found += ", such as " + checkpoint.entries.front().path;
  return Error{ErrorKind::kUsage,
               "no path matches '" + plain_text(options.filter) + "'; found " + found +
                   ", expected at least one that matches",
               "--filter"};
}

bool is_of_component(const Entry& entry, const std::string& component) {
  return component.empty() || component_label(entry) == component ||
         component_name(entry.component) == component;
}

/// The entries that the options ask for.
Result<std::vector<ShownEntry>> select(const Checkpoint& checkpoint,
                                       const InspectOptions& options) {
  std::optional<PathPattern> pattern;
  if (!options.filter.empty()) {
    CKPTVERIFY_TRY(pattern, PathPattern::guess(options.filter));
  }
  const Entry* only = nullptr;
  if (!options.tensor.empty()) {
    CKPTVERIFY_TRY(only, entry_named(checkpoint, options.tensor));
  }
  std::vector<ShownEntry> shown;
  const bool all = !pattern && options.component.empty() && only == nullptr;
  if (all) shown.reserve(checkpoint.entries.size());
  for (const Entry& entry : checkpoint.entries) {
    if (!is_of_component(entry, options.component)) continue;
    if (only != nullptr && &entry != only) continue;
    if (pattern) {
      CKPTVERIFY_TRY(bool found, pattern->found_in(entry.path));
      if (!found) {
        CKPTVERIFY_TRY(found, pattern->found_in(shown_name(entry)));
      }
      if (!found) continue;
    }
    shown.emplace_back().entry = &entry;
  }
  if (shown.empty() && pattern) return nothing_matches(checkpoint, options);
  if (shown.empty() && only != nullptr) return no_such_entry(options.tensor);
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

struct Shown {
  std::vector<ShownEntry> entries;
  std::vector<Finding> damaged = {};  // where bytes were read
};

Result<Shown> shown_entries(const Checkpoint& checkpoint, const InspectOptions& options) {
  CKPTVERIFY_TRY(std::vector<ShownEntry> entries, select(checkpoint, options));
  Shown shown{.entries = std::move(entries)};
  if (!options.needs_bytes()) return shown;
  Progress progress("reading", bytes_of_files(checkpoint));
  Threads threads{options.common.threads, progress.bytes_read()};
  shown.damaged = damage_of(checkpoint, shown.entries, threads);
  if (options.digest == "ckv1") {
    CKPTVERIFY_TRY_VOID(add_fingerprints(checkpoint, threads, shown.entries));
  }
  CKPTVERIFY_TRY_VOID(add_details(checkpoint, options, threads, shown.entries));
  return shown;
}

Result<void> print_text(const Checkpoint& checkpoint, const InspectOptions& options,
                        const Shown& shown) {
  if (options.print) {
    CKPTVERIFY_TRY_VOID(print_values(checkpoint, *shown.entries.front().entry, options.limit));
  } else {
    print_tree(checkpoint, shown.entries);
  }
  if (shown.entries.empty() && !options.component.empty())
    std::cout << "\nno entry is of the component " << options.component << '\n';
  if (!shown.damaged.empty()) std::cout << '\n';
  print_damaged(shown.damaged);
  return {};
}

Result<ExitCode> show(const Checkpoint& checkpoint, const InspectOptions& options) {
  CKPTVERIFY_TRY(Shown shown, shown_entries(checkpoint, options));
  const ExitCode code = code_of_reading(checkpoint, shown.damaged);
  if (options.common.output() == Output::kText) {
    CKPTVERIFY_TRY_VOID(print_text(checkpoint, options, shown));
    return code;
  }
  InspectExtras extras{.damaged = std::move(shown.damaged)};
  if (options.print) {
    CKPTVERIFY_TRY(extras.elements,
                   values_json(checkpoint, *shown.entries.front().entry, options.limit));
  }
  write_inspect_json(std::cout, checkpoint, shown.entries, extras);
  return code;
}

Result<int> run_inspect(const InspectOptions& options) {
  CKPTVERIFY_TRY_VOID(check_usage(options));
  CKPTVERIFY_TRY(const Source source, Source::open(options.checkpoint));
  CKPTVERIFY_TRY(const bool folder, show_collection(source, options.common.output()));
  if (folder) return kExitPass;
  const Depth depth = options.needs_bytes() ? Depth::kWhole : Depth::kListing;
  CKPTVERIFY_TRY(const Checkpoint checkpoint, read_checkpoint(source, depth));
  auto code = show(checkpoint, options);
  if (!code) return in_checkpoint(options.checkpoint, std::move(code).error());
  return static_cast<int>(*code);
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
  command->add_option(
      "--tensor", options->tensor,
      "Only the entry with this path, or with the component's and the name that the "
      "tree shows");
  command->add_flag("--print", options->print, "The tensor's elements, with their indices");
  command->add_option("--limit", options->limit, "Elements to print; 0 is all")
      ->capture_default_str();
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Paths are as --json lists them; the tree shows them below their component, and both names\n"
      "match. Without --stats, --digest and --print no tensor's bytes are read and no checksum is\n"
      "verified: that is what check does.\n"
      "Exit codes: 0 done, 1 malformed or damaged, 2 not all of it was interpreted, 64 wrong "
      "usage, also\n"
      "where nothing matches --filter or --tensor, 66 cannot be opened.\n"
      "Examples: ckptverify inspect checkpoints/step-1000\n"
      "          ckptverify inspect model.pt --component optimizer\n"
      "          ckptverify inspect model.pt --filter '*.bias' --stats\n"
      "          ckptverify inspect model.pt --tensor model.wte.weight --print --limit 20\n"
      "          ckptverify inspect model.safetensors --digest sha256 --json");
  command->callback([options, &exit_code] {
    exit_code = code_of(run_inspect(*options), "inspect", options->common.output());
  });
}

}  // namespace ckptverify::cli
