// JSON back to a report. Every required key is looked up by one function, so that each complaint
// names the key.
#include <algorithm>
#include <array>

#include "src/report/json.h"

namespace ckptverify {
namespace {

Error wrong(std::string_view key, std::string_view expected) {
  return {.kind = ErrorKind::kMalformed,
          .message = "member \"" + std::string(key) +
                     "\" is missing or of another type; expected " + std::string(expected)};
}

Result<std::string> text_of(const Json& json, std::string_view key) {
  const Json* member = json.find(key);
  if (member == nullptr || member->string() == nullptr) return wrong(key, "a string");
  return *member->string();
}

Result<std::uint64_t> count_of(const Json& json, std::string_view key) {
  const Json* member = json.find(key);
  const auto value = member == nullptr ? std::nullopt : member->unsigned_integer();
  if (!value) return wrong(key, "an unsigned integer");
  return *value;
}

Result<double> number_of(const Json& json, std::string_view key) {
  const Json* member = json.find(key);
  const auto value = member == nullptr ? std::nullopt : member->number();
  if (!value) return wrong(key, "a number");
  return *value;
}

Result<const Json::Array*> array_of(const Json& json, std::string_view key) {
  const Json* member = json.find(key);
  if (member == nullptr || member->array() == nullptr) return wrong(key, "an array");
  return member->array();
}

Result<std::vector<std::string>> texts_of(const Json& json, std::string_view key) {
  CKPTVERIFY_TRY(const Json::Array* const array, array_of(json, key));
  std::vector<std::string> texts;
  for (const Json& item : *array) {
    if (item.string() == nullptr) return wrong(key, "an array of strings");
    texts.push_back(*item.string());
  }
  return texts;
}

template <class T>
Result<std::vector<T>> list_of(const Json& json, std::string_view key,
                               Result<T> (*item_of)(const Json&)) {
  CKPTVERIFY_TRY(const Json::Array* const array, array_of(json, key));
  std::vector<T> items;
  for (const Json& member : *array) {
    CKPTVERIFY_TRY(auto item, item_of(member));
    items.push_back(std::move(item));
  }
  return items;
}

Result<Status> status_of(const Json& json) {
  constexpr std::array kStatuses = {
      Status::kPass,        Status::kFail,          Status::kWarn,    Status::kInconclusive,
      Status::kNotObserved, Status::kNotApplicable, Status::kSkipped, Status::kWaived};
  CKPTVERIFY_TRY(const std::string name, text_of(json, "status"));
  const auto found = std::find_if(kStatuses.begin(), kStatuses.end(),
                                  [&](Status status) { return status_name(status) == name; });
  if (found == kStatuses.end()) return wrong("status", "a status");
  return *found;
}

Result<Verdict> verdict_in(const Json& json) {
  CKPTVERIFY_TRY(const std::string name, text_of(json, "verdict"));
  for (const Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kInconclusive})
    if (verdict_name(verdict) == name) return verdict;
  return wrong("verdict", "\"pass\", \"fail\" or \"inconclusive\"");
}

/// The inverse of Cause::id().
Result<Cause> cause_named(const std::string& id) {
  for (const CauseKindRow& row : cause_kinds())
    if (row.id == id) return Cause{.kind = row.kind, .component = std::nullopt};
  if (const Cause none; none.id() == id) return none;
  for (const Component component : components())
    if (const Cause cause{.kind = CauseKind::kUnknown, .component = component}; cause.id() == id)
      return cause;
  return wrong("cause", "the id of a cause; found \"" + id + "\"");
}

Result<RankedCause> ranked_cause_of(const Json& json) {
  RankedCause ranked;
  CKPTVERIFY_TRY(const std::string id, text_of(json, "id"));
  CKPTVERIFY_TRY(ranked.cause, cause_named(id));
  CKPTVERIFY_TRY(ranked.checks, texts_of(json, "checks"));
  return ranked;
}

Result<Evidence> evidence_of(const Json& json) {
  Evidence evidence;
  CKPTVERIFY_TRY(evidence.name, text_of(json, "name"));
  CKPTVERIFY_TRY(evidence.value, text_of(json, "value"));
  return evidence;
}

Result<Finding> check_of(const Json& json) {
  Finding finding{.check = {}, .message = {}};
  CKPTVERIFY_TRY(finding.check, text_of(json, "id"));
  CKPTVERIFY_TRY(finding.status, status_of(json));
  CKPTVERIFY_TRY(finding.subject, text_of(json, "subject"));
  CKPTVERIFY_TRY(finding.message, text_of(json, "message"));
  if (json.find("cause") != nullptr) {
    CKPTVERIFY_TRY(const std::string id, text_of(json, "cause"));
    CKPTVERIFY_TRY(finding.cause, cause_named(id));
  }
  CKPTVERIFY_TRY(finding.evidence, list_of(json, "evidence", evidence_of));
  return finding;
}

Result<PhaseRecord> phase_of(const Json& json) {
  PhaseRecord phase;
  CKPTVERIFY_TRY(phase.name, text_of(json, "name"));
  CKPTVERIFY_TRY(phase.command, texts_of(json, "command"));
  CKPTVERIFY_TRY(phase.started_s, number_of(json, "started_s"));
  CKPTVERIFY_TRY(phase.wall_s, number_of(json, "wall_s"));
  CKPTVERIFY_TRY(phase.exit, text_of(json, "exit"));
  CKPTVERIFY_TRY(phase.kill, text_of(json, "kill"));
  CKPTVERIFY_TRY(phase.first_step, count_of(json, "first_step"));
  CKPTVERIFY_TRY(phase.last_step, count_of(json, "last_step"));
  CKPTVERIFY_TRY(phase.log, text_of(json, "log"));
  CKPTVERIFY_TRY(phase.events, text_of(json, "events"));
  return phase;
}

Result<IdentityRow> identity_of(const Json& json) {
  IdentityRow row;
  CKPTVERIFY_TRY(row.component, text_of(json, "component"));
  CKPTVERIFY_TRY(row.live, text_of(json, "live"));
  CKPTVERIFY_TRY(row.disk, text_of(json, "disk"));
  CKPTVERIFY_TRY(row.restored, text_of(json, "restored"));
  CKPTVERIFY_TRY(row.status, status_of(json));
  return row;
}

Result<std::pair<std::uint64_t, double>> point_of(const Json& json) {
  const Json::Array* pair = json.array();
  const bool two = pair != nullptr && pair->size() == 2;
  const auto step = two ? (*pair)[0].unsigned_integer() : std::nullopt;
  const auto value = two ? (*pair)[1].number() : std::nullopt;
  if (!step || !value) return wrong("points", "pairs of a step and a number");
  return std::pair{*step, *value};
}

Result<Curve> curve_of(const Json& json) {
  Curve curve;
  CKPTVERIFY_TRY(curve.metric, text_of(json, "metric"));
  CKPTVERIFY_TRY(curve.run, text_of(json, "run"));
  CKPTVERIFY_TRY(curve.points, list_of(json, "points", point_of));
  return curve;
}

Result<Timings> timings_of(const Json& json) {
  const Json* member = json.find("timings");
  if (member == nullptr) return wrong("timings", "an object");
  Timings timings;
  CKPTVERIFY_TRY(timings.wall_s, number_of(*member, "wall_s"));
  CKPTVERIFY_TRY(timings.trainer_s, number_of(*member, "trainer_s"));
  CKPTVERIFY_TRY(timings.copy_s, number_of(*member, "copy_s"));
  CKPTVERIFY_TRY(timings.own_s, number_of(*member, "own_s"));
  CKPTVERIFY_TRY(timings.copy_method, text_of(*member, "copy_method"));
  return timings;
}

Result<std::map<std::string, std::string>> environment_of(const Json& json) {
  const Json* member = json.find("environment");
  if (member == nullptr || member->object() == nullptr) return wrong("environment", "an object");
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] : *member->object()) {
    if (value.string() == nullptr) return wrong("environment", "strings");
    environment[name] = *value.string();
  }
  return environment;
}

/// "run" of "ckptverify.run/1".
Result<std::string> command_of(const Json& json) {
  CKPTVERIFY_TRY(const std::string schema, text_of(json, "schema"));
  constexpr std::string_view kPrefix = "ckptverify.";
  constexpr std::string_view kSuffix = "/1";
  if (!schema.starts_with(kPrefix) || !schema.ends_with(kSuffix) ||
      schema.size() <= kPrefix.size() + kSuffix.size())
    return wrong("schema", "ckptverify.<command>/1; found \"" + schema + "\"");
  return schema.substr(kPrefix.size(), schema.size() - kPrefix.size() - kSuffix.size());
}

}  // namespace

Result<Report> report_from_json(const Json& json) {
  Report report;
  CKPTVERIFY_TRY(report.command, command_of(json));
  CKPTVERIFY_TRY(report.subject, text_of(json, "subject"));
  CKPTVERIFY_TRY(report.verdict, verdict_in(json));
  CKPTVERIFY_TRY(report.causes, list_of(json, "causes", ranked_cause_of));
  CKPTVERIFY_TRY(report.checks, list_of(json, "checks", check_of));
  CKPTVERIFY_TRY(report.proven, texts_of(json, "proven"));
  CKPTVERIFY_TRY(report.not_proven, texts_of(json, "not_proven"));
  CKPTVERIFY_TRY(report.save_step, count_of(json, "save_step"));
  CKPTVERIFY_TRY(report.final_step, count_of(json, "final_step"));
  CKPTVERIFY_TRY(report.fingerprint, text_of(json, "fingerprint"));
  CKPTVERIFY_TRY(report.phases, list_of(json, "phases", phase_of));
  CKPTVERIFY_TRY(report.identity, list_of(json, "identity", identity_of));
  CKPTVERIFY_TRY(report.curves, list_of(json, "curves", curve_of));
  CKPTVERIFY_TRY(report.timings, timings_of(json));
  CKPTVERIFY_TRY(report.environment, environment_of(json));
  CKPTVERIFY_TRY(report.output_directory, text_of(json, "output_directory"));
  CKPTVERIFY_TRY(report.repeat_command, text_of(json, "repeat_command"));
  CKPTVERIFY_TRY(report.seed, count_of(json, "seed"));
  return report;
}

}  // namespace ckptverify
