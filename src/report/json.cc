#include "src/report/json.h"

#include "src/report/words.h"

namespace ckptverify {
namespace {

Json texts(const std::vector<std::string>& list) {
  return Json::Array(list.begin(), list.end());
}

Json cause_json(const Report& report, const RankedCause& ranked, std::size_t rank) {
  Json json;
  json.set("id", ranked.cause.id());
  json.set("rank", static_cast<std::uint64_t>(rank));
  json.set("checks", texts(ranked.checks));
  json.set("meaning", cause_meaning(report, ranked.cause));
  json.set("remedy", cause_remedy(report, ranked.cause));
  return json;
}

Json check_json(const Finding& finding) {
  Json json;
  json.set("id", finding.check);
  json.set("status", status_name(finding.status));
  if (finding.cause) json.set("cause", finding.cause->id());
  json.set("subject", finding.subject);
  json.set("message", finding.message);
  Json::Array evidence;
  for (const Evidence& row : finding.evidence)
    evidence.push_back(Json::Object{{"name", row.name}, {"value", row.value}});
  json.set("evidence", std::move(evidence));
  return json;
}

Json phase_json(const PhaseRecord& phase) {
  Json json;
  json.set("name", phase.name);
  json.set("command", texts(phase.command));
  json.set("started_s", phase.started_s);
  json.set("wall_s", phase.wall_s);
  json.set("exit", phase.exit);
  json.set("kill", phase.kill);
  json.set("first_step", phase.first_step);
  json.set("last_step", phase.last_step);
  json.set("log", phase.log);
  json.set("events", phase.events);
  return json;
}

Json identity_json(const IdentityRow& row) {
  Json json;
  json.set("component", row.component);
  json.set("live", row.live);
  json.set("disk", row.disk);
  json.set("restored", row.restored);
  json.set("status", status_name(row.status));
  return json;
}

Json curve_json(const Curve& curve) {
  Json::Array points;
  for (const auto& [step, value] : curve.points) points.push_back(Json::Array{step, value});
  Json json;
  json.set("metric", curve.metric);
  json.set("run", curve.run);
  json.set("points", std::move(points));
  return json;
}

Json timings_json(const Timings& timings) {
  Json json;
  json.set("wall_s", timings.wall_s);
  json.set("trainer_s", timings.trainer_s);
  json.set("copy_s", timings.copy_s);
  json.set("own_s", timings.own_s);
  json.set("copy_method", timings.copy_method);
  return json;
}

template <class Range, class Function>
Json list(const Range& range, Function&& function) {
  Json::Array array;
  for (const auto& item : range) array.push_back(function(item));
  return array;
}

}  // namespace

Json report_json(const Report& report) {
  Json json;
  json.set("schema", "ckptverify." + report.command + "/1");
  json.set("subject", report.subject);
  json.set("verdict", verdict_name(report.verdict));
  Json::Array causes;
  for (const RankedCause& ranked : report.causes)
    causes.push_back(cause_json(report, ranked, causes.size() + 1));
  json.set("causes", std::move(causes));
  json.set("checks", list(report.checks, check_json));
  json.set("proven", texts(report.proven));
  json.set("not_proven", texts(report.not_proven));
  json.set("save_step", report.save_step);
  json.set("final_step", report.final_step);
  json.set("fingerprint", report.fingerprint);
  json.set("phases", list(report.phases, phase_json));
  json.set("identity", list(report.identity, identity_json));
  json.set("curves", list(report.curves, curve_json));
  json.set("timings", timings_json(report.timings));
  Json::Object environment;
  for (const auto& [name, value] : report.environment) environment.emplace_back(name, value);
  json.set("environment", std::move(environment));
  json.set("output_directory", report.output_directory);
  json.set("repeat_command", report.repeat_command);
  json.set("seed", report.seed);
  return json;
}

}  // namespace ckptverify
