// One line of an events file to one event, by docs/events.md: fields that we know must be right,
// fields that we do not know are left alone, a type that we do not know is an error.
#include "ckptverify/event.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "ckptverify/json.h"
#include "ckptverify/source.h"

namespace ckptverify {

namespace {

constexpr std::string_view kSchema = "ckptverify.event/1";

// 200 bytes an entry: a million entries of state, more than any trainer holds.
constexpr std::uint64_t kSideBytesMax = std::uint64_t{256} << 20;

Error wrong(std::string_view name, std::string_view found, std::string_view expected) {
  return Error{.message = "field " + std::string(name) + ": found " + std::string(found) +
                          ", expected " + std::string(expected)};
}

std::string_view type_of(const Json& json) {
  if (json.is_null()) return "null";
  if (json.boolean() != nullptr) return "a boolean";
  if (json.string() != nullptr) return "a string";
  if (json.array() != nullptr) return "an array";
  if (json.object() != nullptr) return "an object";
  return json.is_float() ? "a float" : "an integer";
}

/// A field that must be there.
Result<const Json*> field(const Json& json, std::string_view name) {
  const Json* found = json.find(name);
  if (found == nullptr) return wrong(name, "nothing", "a value");
  return found;
}

Result<std::string> as_string(const Json& json, std::string_view name) {
  if (json.string() == nullptr) return wrong(name, type_of(json), "a string");
  return *json.string();
}

Result<std::uint64_t> as_count(const Json& json, std::string_view name) {
  const auto value = json.unsigned_integer();
  if (!value) return wrong(name, type_of(json), "an integer of 0 or more");
  return *value;
}

Result<double> as_number(const Json& json, std::string_view name) {
  const auto value = json.number();
  if (!value) return wrong(name, type_of(json), "a number");
  return *value;
}

Result<Digest> as_digest(const Json& json, std::string_view name) {
  CKPTVERIFY_TRY(const std::string hex, as_string(json, name));
  const auto digest = digest_from_hex(hex);
  if (!digest) return wrong(name, "\"" + hex + "\"", "32 lower-case hexadecimal digits");
  return *digest;
}

Result<std::string> string_field(const Json& json, std::string_view name) {
  CKPTVERIFY_TRY(const Json* found, field(json, name));
  return as_string(*found, name);
}

Result<std::uint64_t> count_field(const Json& json, std::string_view name) {
  CKPTVERIFY_TRY(const Json* found, field(json, name));
  return as_count(*found, name);
}

Result<std::uint32_t> small_count_field(const Json& json, std::string_view name) {
  CKPTVERIFY_TRY(const std::uint64_t value, count_field(json, name));
  if (value > std::numeric_limits<std::uint32_t>::max())
    return wrong(name, std::to_string(value), "an integer of 32 bits");
  return static_cast<std::uint32_t>(value);
}

template <class T>
using Convert = Result<T> (*)(const Json&, std::string_view);

template <class T>
Result<std::optional<T>> optional_field(const Json& json, std::string_view name,
                                        Convert<T> convert) {
  const Json* found = json.find(name);
  if (found == nullptr) return std::optional<T>();
  CKPTVERIFY_TRY(T value, convert(*found, name));
  return std::optional<T>(std::move(value));
}

template <class T>
Result<std::vector<T>> as_list(const Json& json, std::string_view name, Convert<T> convert) {
  if (json.array() == nullptr) return wrong(name, type_of(json), "an array");
  std::vector<T> items;
  for (const Json& item : *json.array()) {
    CKPTVERIFY_TRY(T value, convert(item, name));
    items.push_back(std::move(value));
  }
  return items;
}

template <class T>
Result<std::map<std::string, T>> as_map(const Json& json, std::string_view name,
                                        Convert<T> convert) {
  if (json.object() == nullptr) return wrong(name, type_of(json), "an object");
  std::map<std::string, T> items;
  for (const auto& [key, item] : *json.object()) {
    CKPTVERIFY_TRY(T value, convert(item, std::string(name) + "." + key));
    items.emplace(key, std::move(value));
  }
  return items;
}

Result<std::vector<std::string>> strings_field(const Json& json, std::string_view name) {
  CKPTVERIFY_TRY(const Json* found, field(json, name));
  return as_list<std::string>(*found, name, as_string);
}

using What = decltype(Event::what);

Result<What> parse_start(const Json& json, const std::string&) {
  StartEvent event;
  CKPTVERIFY_TRY(event.command, strings_field(json, "command"));
  CKPTVERIFY_TRY(const Json* versions, field(json, "versions"));
  CKPTVERIFY_TRY(event.versions, as_map<std::string>(*versions, "versions", as_string));
  CKPTVERIFY_TRY(event.hooks, strings_field(json, "hooks"));
  CKPTVERIFY_TRY(event.unhooked, strings_field(json, "unhooked"));
  return What(std::move(event));
}

Result<What> parse_restored(const Json& json, const std::string&) {
  RestoredEvent event;
  CKPTVERIFY_TRY(event.path, string_field(json, "path"));
  CKPTVERIFY_TRY(event.step, count_field(json, "step"));
  return What(std::move(event));
}

Result<What> parse_step(const Json& json, const std::string&) {
  StepEvent event;
  CKPTVERIFY_TRY(event.step, count_field(json, "step"));
  CKPTVERIFY_TRY(event.loss, optional_field<double>(json, "loss", as_number));
  CKPTVERIFY_TRY(event.scale, optional_field<double>(json, "scale", as_number));
  CKPTVERIFY_TRY(event.grad_norm, optional_field<double>(json, "grad_norm", as_number));
  CKPTVERIFY_TRY(event.batch, optional_field<Digest>(json, "batch", as_digest));
  CKPTVERIFY_TRY(event.data_wait_s, optional_field<double>(json, "data_wait_s", as_number));
  if (const Json* lr = json.find("lr")) {
    CKPTVERIFY_TRY(event.lr, as_list<double>(*lr, "lr", as_number));
  }
  if (const Json* rng = json.find("rng")) {
    CKPTVERIFY_TRY(event.rng, as_map<Digest>(*rng, "rng", as_digest));
  }
  return What(std::move(event));
}

Result<StateEntry> as_entry(const Json& json, std::string_view) {
  StateEntry entry;
  CKPTVERIFY_TRY(entry.path, string_field(json, "path"));
  CKPTVERIFY_TRY(const Json* digest, field(json, "digest"));
  CKPTVERIFY_TRY(entry.digest, as_digest(*digest, "digest"));
  const Json* dtype = json.find("dtype");
  const Json* shape = json.find("shape");
  if ((dtype == nullptr) != (shape == nullptr)) {
    return wrong("entries", dtype == nullptr ? "a shape alone" : "a dtype alone",
                 "both for a tensor and neither for a value");
  }
  if (dtype == nullptr) return entry;
  CKPTVERIFY_TRY(entry.dtype, as_string(*dtype, "dtype"));
  if (entry.dtype.empty()) return wrong("dtype", "an empty string", "PyTorch's name of a type");
  CKPTVERIFY_TRY(entry.shape, as_list<std::uint64_t>(*shape, "shape", as_count));
  return entry;
}

Result<ComponentState> as_component(const Json& json, std::string_view name) {
  if (json.object() == nullptr) return wrong(name, type_of(json), "an object");
  ComponentState state;
  CKPTVERIFY_TRY(const Json* digest, field(json, "digest"));
  CKPTVERIFY_TRY(state.digest, as_digest(*digest, "digest"));
  CKPTVERIFY_TRY(const Json* entries, field(json, "entries"));
  CKPTVERIFY_TRY(state.entries, as_list<StateEntry>(*entries, "entries", as_entry));
  return state;
}

Result<StateMoment> moment_of(const std::string& at) {
  if (at == "init") return StateMoment::kInit;
  if (at == "save") return StateMoment::kSave;
  if (at == "restored") return StateMoment::kRestored;
  return wrong("at", "\"" + at + "\"", "init, save or restored");
}

/// The components object that lies in a file of its own, beside the events.
Result<Json> read_side_file(const Json& side, const std::string& directory) {
  CKPTVERIFY_TRY(const std::string name, as_string(side, "side"));
  const bool is_plain = !name.empty() && name != "." && name != ".." &&
                        name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  if (!is_plain) return wrong("side", "\"" + name + "\"", "a plain file name");
  CKPTVERIFY_TRY(const Source file, Source::open(std::filesystem::path(directory) / name));
  if (file.is_directory()) return wrong("side", "a directory", "a file").about(file.name());
  if (file.bytes().size() > kSideBytesMax) {
    return wrong("side", std::to_string(file.bytes().size()) + " bytes",
                 "at most " + std::to_string(kSideBytesMax))
        .about(file.name());
  }
  auto components = Json::parse(as_text(file.bytes()));
  if (!components) return std::move(components).error().about(file.name());
  return components;
}

Result<What> parse_state(const Json& json, const std::string& directory) {
  StateEvent event;
  CKPTVERIFY_TRY(const std::string at, string_field(json, "at"));
  CKPTVERIFY_TRY(event.at, moment_of(at));
  CKPTVERIFY_TRY(event.captured_at, string_field(json, "captured_at"));
  CKPTVERIFY_TRY(event.step, count_field(json, "step"));
  const Json* components = json.find("components");
  const Json* side = json.find("side");
  if ((components == nullptr) == (side == nullptr)) {
    return wrong("components",
                 side == nullptr ? "neither components nor side" : "components and side",
                 "one of the two");
  }
  Json read;
  if (side != nullptr) {
    CKPTVERIFY_TRY(read, read_side_file(*side, directory));
    components = &read;
  }
  CKPTVERIFY_TRY(event.components, as_map<ComponentState>(*components, "components", as_component));
  return What(std::move(event));
}

template <SavePoint kPoint>
Result<What> parse_save(const Json& json, const std::string&) {
  SaveEvent event{.point = kPoint, .path = {}};
  CKPTVERIFY_TRY(event.path, string_field(json, "path"));
  CKPTVERIFY_TRY(event.step, count_field(json, "step"));
  return What(std::move(event));
}

Result<What> parse_eval(const Json& json, const std::string&) {
  EvalEvent event;
  CKPTVERIFY_TRY(event.step, count_field(json, "step"));
  CKPTVERIFY_TRY(const Json* metrics, field(json, "metrics"));
  CKPTVERIFY_TRY(event.metrics, as_map<double>(*metrics, "metrics", as_number));
  CKPTVERIFY_TRY(event.outputs, optional_field<Digest>(json, "outputs", as_digest));
  return What(std::move(event));
}

Result<What> parse_memory(const Json& json, const std::string&) {
  MemoryEvent event;
  CKPTVERIFY_TRY(event.device, string_field(json, "device"));
  CKPTVERIFY_TRY(event.allocated_bytes, count_field(json, "allocated"));
  CKPTVERIFY_TRY(event.reserved_bytes, count_field(json, "reserved"));
  CKPTVERIFY_TRY(event.peak_bytes, count_field(json, "peak"));
  return What(std::move(event));
}

Result<What> parse_end(const Json& json, const std::string&) {
  EndEvent event;
  CKPTVERIFY_TRY(event.reason, string_field(json, "reason"));
  return What(std::move(event));
}

struct TypeRow {
  std::string_view type;
  Result<What> (*parse)(const Json&, const std::string& directory);
};

constexpr TypeRow kTypes[] = {
    {"start", parse_start},
    {"restored", parse_restored},
    {"step", parse_step},
    {"state", parse_state},
    {"save_begin", parse_save<SavePoint::kBegin>},
    {"save_end", parse_save<SavePoint::kEnd>},
    {"eval", parse_eval},
    {"memory", parse_memory},
    {"end", parse_end},
};

Result<What> parse_what(const Json& json, const std::string& directory) {
  CKPTVERIFY_TRY(const std::string type, string_field(json, "type"));
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.parse(json, directory);
  return wrong("type", "\"" + type + "\"", "a type of " + std::string(kSchema));
}

/// What every event begins with.
Result<Event> parse_envelope(const Json& json) {
  if (json.object() == nullptr) return wrong("schema", type_of(json), "an object");
  CKPTVERIFY_TRY(const std::string schema, string_field(json, "schema"));
  if (schema != kSchema) return wrong("schema", "\"" + schema + "\"", kSchema);
  Event event;
  CKPTVERIFY_TRY(event.seq, count_field(json, "seq"));
  CKPTVERIFY_TRY(const std::uint64_t pid, count_field(json, "pid"));
  if (pid > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return wrong("pid", std::to_string(pid), "a process id");
  event.pid = static_cast<std::int64_t>(pid);
  CKPTVERIFY_TRY(event.rank, small_count_field(json, "rank"));
  CKPTVERIFY_TRY(event.world, small_count_field(json, "world"));
  CKPTVERIFY_TRY(event.t_mono_ns, count_field(json, "t_mono_ns"));
  CKPTVERIFY_TRY(event.role, string_field(json, "role"));
  if (event.role != "trainer" && event.role != "launcher" && event.role != "worker")
    return wrong("role", "\"" + event.role + "\"", "trainer, launcher or worker");
  return event;
}

}  // namespace

Result<Event> parse_event(std::string_view line, const std::string& directory) {
  CKPTVERIFY_TRY(const Json json, Json::parse(line));
  CKPTVERIFY_TRY(Event event, parse_envelope(json));
  CKPTVERIFY_TRY(event.what, parse_what(json, directory));
  return event;
}

}  // namespace ckptverify
