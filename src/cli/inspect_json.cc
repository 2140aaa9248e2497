// The JSON of `inspect`.
#include "src/cli/inspect_output.h"

namespace ckptverify::cli {
namespace {

Json shape_json(const Tensor& tensor) {
  return Json::Array(tensor.shape.begin(), tensor.shape.end());
}

Json parts_json(const Composite& composite) {
  Json::Array parts;
  for (const auto& [name, node] : composite.parts) {
    Json part = Json::Object{{"name", name}};
    if (const auto* tensor = std::get_if<Tensor>(&node)) {
      part.set("dtype", dtype_name(tensor->dtype));
      part.set("shape", shape_json(*tensor));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Json statistics_json(const Statistics& statistics) {
  Json json = Json::Object{{"count", statistics.count},
                           {"nan", statistics.nan},
                           {"infinite", statistics.infinite},
                           {"zero", statistics.zero}};
  if (statistics.minimum) json.set("min", *statistics.minimum);
  if (statistics.maximum) json.set("max", *statistics.maximum);
  if (statistics.mean) json.set("mean", *statistics.mean);
  return json;
}

Json tensor_json(const ShownEntry& shown, const Tensor& tensor, const std::string& label) {
  const Entry& entry = *shown.entry;
  Json row = Json::Object{{"path", entry.path},
                          {"dtype", dtype_name(tensor.dtype)},
                          {"shape", shape_json(tensor)},
                          {"bytes", logical_size(tensor)},
                          {"component", label}};
  if (!shown.digest.empty()) row.set("digest", shown.digest);
  if (!entry.alias_of.empty()) row.set("alias_of", entry.alias_of);
  if (tensor.absent) row.set("absent", true);
  if (shown.statistics) row.set("statistics", statistics_json(*shown.statistics));
  return row;
}

Json value_row(const ShownEntry& shown, const Value& value, const std::string& label) {
  Json row = Json::Object{{"path", shown.entry->path},
                          {"type", value_type(value)},
                          {"value", value_json(value)},
                          {"component", label}};
  if (!shown.digest.empty()) row.set("digest", shown.digest);
  return row;
}

}  // namespace

Json inspect_json(const Checkpoint& checkpoint, const std::vector<ShownEntry>& shown) {
  Json::Array tensors;
  Json::Array values;
  Json::Array opaque;
  for (const ShownEntry& one : shown) {
    const Entry& entry = *one.entry;
    const std::string label = component_label(entry);
    if (const auto* tensor = std::get_if<Tensor>(&entry.node)) {
      tensors.push_back(tensor_json(one, *tensor, label));
    } else if (const auto* value = std::get_if<Value>(&entry.node)) {
      values.push_back(value_row(one, *value, label));
    } else if (const auto* object = std::get_if<Opaque>(&entry.node)) {
      opaque.push_back(
          Json::Object{{"path", entry.path}, {"type", object->type}, {"component", label}});
    } else {
      const auto& composite = *std::get<std::shared_ptr<const Composite>>(entry.node);
      Json row = Json::Object{{"path", entry.path},
                              {"type", composite.kind},
                              {"component", label},
                              {"parts", parts_json(composite)}};
      if (!one.digest.empty()) row.set("digest", one.digest);
      opaque.push_back(std::move(row));
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

}  // namespace ckptverify::cli
