// `ckptverify inspect`: what is in a checkpoint, by component, without its writer.
#include "src/cli/inspect.h"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>

#include "ckptverify/sha256.h"

namespace ckptverify::cli {
namespace {

struct InspectOptions {
  CommonOptions common;
  std::string checkpoint;
  std::string digest;  // "", "ckv1" or "sha256"
  std::string component;
};

using Digests = std::vector<std::string>;  // parallel to the entries; empty text for what has none

Result<Digests> entry_digests(const Checkpoint& checkpoint, const InspectOptions& options) {
  Digests digests(checkpoint.entries.size());
  if (options.digest == "ckv1") {
    CKPTVERIFY_TRY(const Fingerprint all, fingerprint(checkpoint, {options.common.threads}));
    for (std::size_t index = 0; index < digests.size(); ++index) {
      if (all.entries[index]) digests[index] = all.entries[index]->text();
    }
  } else if (options.digest == "sha256") {
    for (std::size_t index = 0; index < digests.size(); ++index) {
      const auto* tensor = std::get_if<Tensor>(&checkpoint.entries[index].node);
      if (tensor == nullptr || tensor->absent) continue;
      CKPTVERIFY_TRY(const LogicalBytes bytes, logical_bytes(checkpoint, *tensor));
      digests[index] = "sha256:" + sha256_hex(bytes.view());
    }
  }
  return digests;
}

bool wanted(const Entry& entry, const InspectOptions& options) {
  return options.component.empty() || component_label(entry) == options.component ||
         component_name(entry.component) == options.component;
}

void add_composite(const Entry& entry, const std::string& label, Json::Array& opaque,
                   const Composite& composite) {
  Json::Array parts;
  for (const auto& [name, node] : composite.parts) {
    if (const auto* tensor = std::get_if<Tensor>(&node)) {
      parts.push_back(
          Json::Object{{"name", name},
                       {"dtype", dtype_name(tensor->dtype)},
                       {"shape", Json::Array(tensor->shape.begin(), tensor->shape.end())}});
    } else {
      parts.push_back(Json::Object{{"name", name}});
    }
  }
  opaque.push_back(Json::Object{{"path", entry.path},
                                {"type", composite.kind},
                                {"component", label},
                                {"parts", std::move(parts)}});
}

Json inspect_json(const Checkpoint& checkpoint, const Digests& digests,
                  const InspectOptions& options) {
  Json::Array tensors;
  Json::Array values;
  Json::Array opaque;
  for (std::size_t index = 0; index < checkpoint.entries.size(); ++index) {
    const Entry& entry = checkpoint.entries[index];
    if (!wanted(entry, options)) continue;
    const std::string label = component_label(entry);
    if (const auto* tensor = std::get_if<Tensor>(&entry.node)) {
      Json row = Json::Object{{"path", entry.path},
                              {"dtype", dtype_name(tensor->dtype)},
                              {"shape", Json::Array(tensor->shape.begin(), tensor->shape.end())},
                              {"bytes", logical_size(*tensor)},
                              {"component", label}};
      if (!digests[index].empty()) row.set("digest", digests[index]);
      if (!entry.alias_of.empty()) row.set("alias_of", entry.alias_of);
      if (tensor->absent) row.set("absent", true);
      tensors.push_back(std::move(row));
    } else if (const auto* value = std::get_if<Value>(&entry.node)) {
      Json row = Json::Object{{"path", entry.path},
                              {"type", value_type(*value)},
                              {"value", value_json(*value)},
                              {"component", label}};
      if (!digests[index].empty()) row.set("digest", digests[index]);
      values.push_back(std::move(row));
    } else if (const auto* object = std::get_if<Opaque>(&entry.node)) {
      opaque.push_back(
          Json::Object{{"path", entry.path}, {"type", object->type}, {"component", label}});
    } else {
      add_composite(entry, label, opaque, *std::get<std::shared_ptr<const Composite>>(entry.node));
    }
  }
  return Json::Object{{"schema", "ckptverify.inspect/1"},
                      {"format", checkpoint.format},
                      {"tensors", std::move(tensors)},
                      {"values", std::move(values)},
                      {"opaque", std::move(opaque)},
                      {"uninterpreted", Json::Array(checkpoint.uninterpreted.begin(),
                                                    checkpoint.uninterpreted.end())}};
}

std::string node_text(const Node& node) {
  struct Visitor {
    std::string operator()(const Tensor& tensor) const {
      return std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape) + "  " +
             size_text(logical_size(tensor)) + (tensor.absent ? "  no data" : "");
    }
    std::string operator()(const Value& value) const {
      return std::string(value_type(value)) + "  " + value_text(value);
    }
    std::string operator()(const Opaque& object) const { return "object of " + object.type; }
    std::string operator()(const std::shared_ptr<const Composite>& composite) const {
      return composite->kind + " of " + std::to_string(composite->parts.size()) + " parts";
    }
  };
  return std::visit(Visitor{}, node);
}

void print_text(const Checkpoint& checkpoint, const Digests& digests,
                const InspectOptions& options) {
  std::map<std::string, std::vector<std::size_t>> groups;
  std::uint64_t total_bytes = 0;
  for (std::size_t index = 0; index < checkpoint.entries.size(); ++index) {
    const Entry& entry = checkpoint.entries[index];
    if (!wanted(entry, options)) continue;
    groups[component_label(entry)].push_back(index);
  }
  std::cout << "format " << checkpoint.format << ", " << checkpoint.files.size() << " files\n";
  for (const auto& [label, indices] : groups) {
    std::uint64_t bytes = 0;
    std::size_t width = 0;
    for (const std::size_t index : indices) {
      const Entry& entry = checkpoint.entries[index];
      const auto* tensor = std::get_if<Tensor>(&entry.node);
      if (tensor != nullptr && entry.alias_of.empty()) bytes += logical_size(*tensor);
      width = std::max(width, entry.path.size());
    }
    total_bytes += bytes;
    std::cout << '\n'
              << label << ": " << indices.size() << " entries, " << size_text(bytes) << '\n';
    for (const std::size_t index : indices) {
      const Entry& entry = checkpoint.entries[index];
      std::cout << "  " << std::left
                << std::setw(static_cast<int>(std::min<std::size_t>(width, 60))) << entry.path
                << "  " << node_text(entry.node);
      if (!entry.alias_of.empty()) std::cout << "  tied to " << entry.alias_of;
      if (!digests[index].empty()) std::cout << "  " << digests[index];
      std::cout << '\n';
    }
  }
  std::cout << "\ntotal: " << size_text(total_bytes) << " of tensors\n";
  for (const std::string& what : checkpoint.uninterpreted) {
    std::cout << "not interpreted: " << what << '\n';
  }
}

Result<int> run_inspect(const InspectOptions& options) {
  CKPTVERIFY_TRY(const Checkpoint checkpoint, read_checkpoint(options.checkpoint));
  CKPTVERIFY_TRY(const Digests digests, entry_digests(checkpoint, options));
  if (options.common.output() == Output::kJson) {
    print_json(inspect_json(checkpoint, digests, options));
  } else {
    print_text(checkpoint, digests, options);
  }
  return checkpoint.uninterpreted.empty() ? kExitPass : kExitInconclusive;
}

}  // namespace

void add_inspect(CLI::App& application, int& exit_code) {
  CLI::App* command = application.add_subcommand(
      "inspect", "Show what is in a checkpoint: tensors, values, components");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("checkpoint", options->checkpoint, "File or directory")->required();
  command
      ->add_option("--digest", options->digest, "Digest every entry: ckv1, or sha256 of the bytes")
      ->check(CLI::IsMember({"ckv1", "sha256"}));
  command->add_option("--component", options->component, "Only this component, such as optimizer");
  add_common_options(*command, options->common, Bulk::kYes);
  command->footer(
      "Examples: ckptverify inspect checkpoints/step-1000\n"
      "          ckptverify inspect model.pt --component optimizer\n"
      "          ckptverify inspect model.safetensors --digest sha256 --json");
  command->callback([options, &exit_code] {
    const Result<int> code = run_inspect(*options);
    exit_code = code ? *code : report_error(code.error());
  });
}

}  // namespace ckptverify::cli
