// The JSON of `inspect`, row by row: a checkpoint of a few megabytes may have a million values.
#include "ckptverify/json_writer.h"
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

void write_details(JsonWriter& json, const ShownEntry& shown) {
  if (!shown.digest.empty()) json.text("digest", shown.digest);
}

void write_tensor(JsonWriter& json, const ShownEntry& shown, const Tensor& tensor) {
  const Entry& entry = *shown.entry;
  json.begin_object();
  json.text("path", entry.path);
  json.text("dtype", dtype_name(tensor.dtype));
  json.member("shape", shape_json(tensor));
  json.member("bytes", logical_size(tensor));
  json.text("component", component_label(entry));
  write_details(json, shown);
  if (!entry.alias_of.empty()) json.text("alias_of", entry.alias_of);
  if (tensor.absent) json.member("absent", true);
  if (shown.statistics) json.member("statistics", statistics_json(*shown.statistics));
  json.end();
}

void write_value(JsonWriter& json, const ShownEntry& shown, const Value& value) {
  json.begin_object();
  json.text("path", shown.entry->path);
  json.text("type", value_type(value));
  json.member("value", value_json(value));
  json.text("component", component_label(*shown.entry));
  write_details(json, shown);
  json.end();
}

void write_opaque(JsonWriter& json, const ShownEntry& shown) {
  const Entry& entry = *shown.entry;
  const auto* object = std::get_if<Opaque>(&entry.node);
  const auto* composite = std::get_if<std::shared_ptr<const Composite>>(&entry.node);
  if (object == nullptr && composite == nullptr) return;
  json.begin_object();
  json.text("path", entry.path);
  json.text("type", object != nullptr ? object->type : (*composite)->kind);
  json.text("component", component_label(entry));
  if (composite != nullptr) {
    json.member("parts", parts_json(**composite));
    write_details(json, shown);
  }
  json.end();
}

}  // namespace

void write_inspect_json(std::ostream& out, const Checkpoint& checkpoint,
                        const std::vector<ShownEntry>& shown, const InspectExtras& extras) {
  JsonWriter json(out);
  json.begin_object();
  json.text("schema", "ckptverify.inspect/1");
  json.text("format", checkpoint.format);
  json.begin_array("tensors");
  for (const ShownEntry& one : shown) {
    if (const auto* tensor = std::get_if<Tensor>(&one.entry->node)) {
      write_tensor(json, one, *tensor);
    }
  }
  json.end();
  json.begin_array("values");
  for (const ShownEntry& one : shown) {
    if (const auto* value = std::get_if<Value>(&one.entry->node)) write_value(json, one, *value);
  }
  json.end();
  json.begin_array("opaque");
  for (const ShownEntry& one : shown) write_opaque(json, one);
  json.end();
  json.member("uninterpreted",
              Json::Array(checkpoint.uninterpreted.begin(), checkpoint.uninterpreted.end()));
  if (!extras.damaged.empty()) json.member("damaged", damaged_json(extras.damaged));
  if (extras.elements) json.member("elements", *extras.elements);
  json.end();
}

}  // namespace ckptverify::cli
