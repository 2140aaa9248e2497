// The plan file: TOML to Plan, strictly. Every key is known or an error, every error says where.

#include "ckptverify/plan.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "harness/placeholders.h"

namespace ckptverify {
namespace {

constexpr std::string_view kSchema = "ckptverify.plan/1";
constexpr std::size_t kPlanBytesMax = 1024 * 1024;  // a person wrote it
constexpr std::size_t kVariableNameBytesMax = 64;

/// What each command and the checkpoint path may name besides the plan's own variables.
const std::vector<std::string> kTrainNames = {"run_dir"};
const std::vector<std::string> kRestoreNames = {"run_dir", "checkpoint", "step"};
const std::vector<std::string> kPathNames = {"run_dir", "step"};
const std::vector<std::string> kStepMetrics = {"loss", "lr", "scale", "grad_norm"};
const std::vector<std::string> kReserved = {"run_dir",  "checkpoint", "step",
                                            "tool_dir", "plan_dir",   "seed"};

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// What a person wrote there, by its type and, where it is short, its value.
std::string found_text(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  if (const auto* text = node.as_string()) return "the string " + in_quotes(text->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) {
    std::ostringstream stream;
    stream << number->get();
    return "the number " + stream.str();
  }
  return "a date or time";
}

/// The plan being read. The first error stops it; readers of keys return nothing after that.
class PlanFile {
 public:
  PlanFile(std::filesystem::path file, toml::table table)
      : file_(std::move(file)), table_(std::move(table)) {}

  Result<Plan> read(const std::vector<std::pair<std::string, std::string>>& settings,
                    const std::filesystem::path& tool_directory);

 private:
  void fail(const toml::source_region& where, const std::string& message) {
    if (error_) return;
    std::string subject = file_.string();
    if (where.begin.line != 0) {
      subject += ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
    }
    error_ = Error{ErrorKind::kUsage, message, subject};
  }
  void fail(const toml::node& node, const std::string& message) { fail(node.source(), message); }

  void allow(const toml::table& table, const std::vector<std::string>& known);
  const toml::node* require(const toml::table& table, const std::string& key);
  const toml::table* section(const toml::table& table, const std::string& key);
  std::string text(const toml::node& node, const std::string& name);
  std::uint64_t count(const toml::node& node, const std::string& name);
  double amount(const toml::node& node, const std::string& name);
  std::vector<std::string> texts(const toml::node& node, const std::string& name);

  void read_variables(Plan& plan, const std::filesystem::path& tool_directory);
  void apply(Plan& plan, const std::vector<std::pair<std::string, std::string>>& settings);
  void read_commands(Plan& plan);
  void need_name(const toml::node& node, const CommandTemplate& command, const std::string& key,
                 const std::string& placeholder);
  void check_inside(const Plan& plan, const toml::node& node);
  void read_steps(Plan& plan);
  void read_environment(Plan& plan);
  void read_tolerances(Plan& plan);
  Tolerance tolerance(const toml::table& table);
  void read_policy(Plan& plan);
  void read_deadlines(Plan& plan);
  void check_names(const Plan& plan, const toml::node& node, const std::string& text,
                   std::vector<std::string> allowed);

  std::filesystem::path file_;
  toml::table table_;
  std::optional<Error> error_;
};

void PlanFile::allow(const toml::table& table, const std::vector<std::string>& known) {
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearest_word(name, known);
    fail(key.source(), "unknown key " + in_quotes(name) + "; expected " +
                           (nearest.empty() ? "one of " + join(known) : in_quotes(nearest)));
  }
}

const toml::node* PlanFile::require(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) fail(table, "found no key " + in_quotes(key) + " here; it is needed");
  return node;
}

const toml::table* PlanFile::section(const toml::table& table, const std::string& key) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) {
    fail(*node, in_quotes(key) + " must be a table; found " + found_text(*node));
  }
  return node->as_table();
}

std::string PlanFile::text(const toml::node& node, const std::string& name) {
  const auto value = node.value_exact<std::string>();
  if (!value) fail(node, in_quotes(name) + " must be a string; found " + found_text(node));
  if (value && value->find('\0') != std::string::npos) {
    fail(node, in_quotes(name) + " must not hold a zero byte, which ends a process's argument");
  }
  return value.value_or("");
}

std::uint64_t PlanFile::count(const toml::node& node, const std::string& name) {
  const auto value = node.value_exact<std::int64_t>();
  if (!value || *value < 0) {
    fail(node, in_quotes(name) + " must be an integer of 0 or more; found " + found_text(node));
  }
  return value ? static_cast<std::uint64_t>(*value) : 0;
}

double PlanFile::amount(const toml::node& node, const std::string& name) {
  const auto value = node.value<double>();
  if (!node.is_number() || !value || !std::isfinite(*value) || *value < 0) {
    fail(node, in_quotes(name) + " must be a number of 0 or more; found " + found_text(node));
    return 0;
  }
  return *value;
}

std::vector<std::string> PlanFile::texts(const toml::node& node, const std::string& name) {
  std::vector<std::string> all;
  const toml::array* array = node.as_array();
  if (array == nullptr) {
    fail(node, in_quotes(name) + " must be an array of strings; found " + found_text(node));
    return all;
  }
  for (const toml::node& item : *array) all.push_back(text(item, name));
  return all;
}

void PlanFile::read_variables(Plan& plan, const std::filesystem::path& tool_directory) {
  if (const toml::table* variables = section(table_, "variables")) {
    for (const auto& [key, node] : *variables) {
      const std::string name(key.str());
      if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
        fail(key.source(), in_quotes(name) + " is a name of the plan itself, not for a variable");
      }
      if (name.empty() || name.size() > kVariableNameBytesMax ||
          name.find_first_of("{}") != std::string::npos) {
        fail(key.source(), in_quotes(name) + " cannot be a variable's name");
      }
      if (const auto whole = node.value_exact<std::int64_t>()) {
        plan.variables[name] = std::to_string(*whole);
      } else {
        plan.variables[name] = text(node, name);
      }
    }
  }
  plan.variables["tool_dir"] = tool_directory.string();
  std::error_code error;
  const auto absolute = std::filesystem::absolute(file_, error);
  plan.variables["plan_dir"] = absolute.lexically_normal().parent_path().string();
  plan.variables["seed"] = std::to_string(plan.seed);
}

void PlanFile::apply(Plan& plan, const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const auto& [name, value] : settings) {
    const bool reserved = std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
    if (!reserved && plan.variables.contains(name)) {
      plan.variables[name] = value;
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [variable, ignored] : plan.variables) {
      if (std::find(kReserved.begin(), kReserved.end(), variable) == kReserved.end()) {
        known.push_back(variable);
      }
    }
    fail(toml::source_region{}, "--set " + name + ": the plan declares no such variable; it has " +
                                    (known.empty() ? "none" : join(known)));
  }
}

void PlanFile::check_names(const Plan& plan, const toml::node& node, const std::string& text,
                           std::vector<std::string> allowed) {
  for (const auto& [name, ignored] : plan.variables) allowed.push_back(name);
  const auto names = placeholder_names(text);
  if (!names) {
    fail(node, names.error().message);
    return;
  }
  for (const std::string& name : *names) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    const std::string nearest = nearest_word(name, allowed);
    fail(node, "unknown placeholder {" + name + "}; expected " +
                   (nearest.empty() ? "one of " + join(allowed) : "{" + nearest + "}"));
  }
}

void PlanFile::read_commands(Plan& plan) {
  const toml::node* commands_node = require(table_, "commands");
  const toml::table* commands = section(table_, "commands");
  if (commands_node == nullptr || commands == nullptr) return;
  allow(*commands, {"train", "resume", "eval"});
  const auto read = [&](const std::string& name, const std::vector<std::string>& allowed,
                        const std::vector<std::string>& needed, CommandTemplate& command) {
    const toml::node* node = name == "eval" ? commands->get(name) : require(*commands, name);
    if (node == nullptr) return;
    command = texts(*node, name);
    if (command.empty() || command.front().empty()) {
      fail(*node, in_quotes(name) + " must have at least the program; found none");
    }
    for (std::size_t index = 0; !error_ && index < command.size(); ++index) {
      check_names(plan, *node->as_array()->get(index), command[index], allowed);
    }
    for (const std::string& placeholder : needed) need_name(*node, command, name, placeholder);
  };
  read("train", kTrainNames, {"run_dir"}, plan.train);
  read("resume", kRestoreNames, {"checkpoint", "run_dir"}, plan.resume);
  read("eval", kRestoreNames, {"checkpoint"}, plan.eval);

  const toml::table* checkpoints = section(table_, "checkpoints");
  if (checkpoints == nullptr) return fail(table_, "there is no table [checkpoints]");
  allow(*checkpoints, {"path"});
  if (const toml::node* path = require(*checkpoints, "path")) {
    plan.checkpoint_pattern = text(*path, "path");
    check_names(plan, *path, plan.checkpoint_pattern, kPathNames);
    check_inside(plan, *path);
  }
}

/// A command that is not told this can only work by accident.
void PlanFile::need_name(const toml::node& node, const CommandTemplate& command,
                         const std::string& key, const std::string& placeholder) {
  if (error_) return;
  for (const std::string& word : command) {
    const auto names = placeholder_names(word);
    if (names && std::find(names->begin(), names->end(), placeholder) != names->end()) return;
  }
  fail(node, in_quotes(key) + " must be told {" + placeholder + "}; found no word that names it");
}

void PlanFile::check_inside(const Plan& plan, const toml::node& node) {
  if (error_) return;
  const std::string run = "/run";
  const auto path =
      expand(plan, {plan.checkpoint_pattern}, {{"run_dir", run}, {"step", std::to_string(1)}});
  if (!path) return;
  const auto inside =
      std::filesystem::path(path->front()).lexically_normal().lexically_relative(run);
  if (!inside.empty() && inside != "." && *inside.begin() != "..") return;
  fail(node, "'path' must lie in {run_dir}, which is another directory in every phase; found " +
                 in_quotes(plan.checkpoint_pattern));
}

void PlanFile::read_steps(Plan& plan) {
  const toml::table* steps = section(table_, "steps");
  if (steps == nullptr) return fail(table_, "there is no table [steps]");
  allow(*steps, {"save", "final", "horizon"});
  const auto read = [&](const char* name, std::uint64_t& step) {
    if (const toml::node* node = require(*steps, name)) step = count(*node, name);
  };
  read("save", plan.save_step);
  read("final", plan.final_step);
  read("horizon", plan.horizon);
  if (error_) return;
  if (plan.save_step == 0) fail(*steps->get("save"), "'save' must be 1 or more; found 0");
  if (plan.save_step >= plan.final_step) {
    fail(*steps->get("final"), "'final' must come after 'save'; found " +
                                   std::to_string(plan.final_step) + ", expected more than " +
                                   std::to_string(plan.save_step));
  }
  if (plan.horizon <= plan.final_step) {
    fail(*steps->get("horizon"),
         "'horizon' must leave a step after 'final', so that nothing ends by itself; found " +
             std::to_string(plan.horizon) + ", expected at least " +
             std::to_string(plan.final_step + 1));
  }
}

void PlanFile::read_environment(Plan& plan) {
  const toml::table* environment = section(table_, "environment");
  if (environment == nullptr) return;
  for (const auto& [key, node] : *environment) {
    const std::string name(key.str());
    if (name.empty() || name.find('=') != std::string::npos ||
        name.starts_with("CKPTVERIFY_EVENTS") || name.starts_with("CKPTVERIFY_HOLD") ||
        name.starts_with("CKPTVERIFY_GATE")) {
      fail(key.source(), in_quotes(name) + " cannot be set here");
    }
    const std::string value = text(node, name);
    check_names(plan, node, value, {});
    if (error_) return;
    const auto filled = fill_placeholders(value, [&](const std::string& wanted) {
      const auto found = plan.variables.find(wanted);
      return found == plan.variables.end() ? std::nullopt : std::optional(found->second);
    });
    plan.environment[name] = filled ? *filled : value;
  }
}

Tolerance PlanFile::tolerance(const toml::table& table) {
  allow(table, {"relative", "absolute"});
  Tolerance read;
  if (const toml::node* node = table.get("relative")) read.relative = amount(*node, "relative");
  if (const toml::node* node = table.get("absolute")) read.absolute = amount(*node, "absolute");
  return read;
}

void PlanFile::read_tolerances(Plan& plan) {
  const toml::table* all = section(table_, "tolerance");
  if (all == nullptr) return;
  allow(*all, {"tensors", "metrics"});
  if (const toml::table* tensors = section(*all, "tensors")) plan.tensors = tolerance(*tensors);
  const toml::table* metrics = section(*all, "metrics");
  if (metrics == nullptr) return;
  for (const auto& [key, node] : *metrics) {
    const std::string name(key.str());
    if (!name.starts_with("eval.") &&
        std::find(kStepMetrics.begin(), kStepMetrics.end(), name) == kStepMetrics.end()) {
      fail(key.source(), "unknown metric " + in_quotes(name) + "; expected one of " +
                             join(kStepMetrics) + ", or eval.<name>");
    }
    if (const toml::table* table = section(*metrics, name)) plan.metrics[name] = tolerance(*table);
  }
}

void PlanFile::read_policy(Plan& plan) {
  if (const toml::table* required = section(table_, "required")) {
    allow(*required, {"components"});
    if (const toml::node* node = required->get("components")) {
      std::vector<std::string> known;
      for (const Component component : components()) {
        known.emplace_back(component_name(component));
      }
      for (const std::string& name : texts(*node, "components")) {
        if (const auto component = component_named(name)) {
          plan.required.push_back(*component);
        } else {
          fail(*node, "unknown component " + in_quotes(name) + "; expected one of " + join(known));
        }
      }
    }
  }
  const toml::node* waivers = table_.get("waivers");
  if (waivers == nullptr) return;
  if (!waivers->is_array()) return fail(*waivers, "'waivers' must be [[waivers]] tables");
  for (const toml::node& node : *waivers->as_array()) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return fail(node, "'waivers' must be [[waivers]] tables");
    allow(*table, {"check", "reason"});
    Waiver waiver;
    if (const toml::node* check = require(*table, "check")) waiver.check = text(*check, "check");
    if (const toml::node* reason = require(*table, "reason")) {
      waiver.reason = text(*reason, "reason");
      if (waiver.reason.find_first_not_of(" \t\n") == std::string::npos)
        fail(*reason, "a waiver needs its reason; found none");
    }
    plan.waivers.push_back(std::move(waiver));
  }
}

void PlanFile::read_deadlines(Plan& plan) {
  const toml::table* deadlines = section(table_, "deadlines");
  if (deadlines == nullptr) return;
  allow(*deadlines, {"start_s", "step_s", "restore_s", "eval_s", "kill_s"});
  const auto read = [&](const char* name, double& seconds) {
    const toml::node* node = deadlines->get(name);
    if (node == nullptr) return;
    seconds = amount(*node, name);
    if (seconds <= 0) fail(*node, in_quotes(name) + " must be more than 0; found 0");
    if (seconds > 7 * 86400.0) {
      fail(*node, in_quotes(name) + " must be a week at most; found " + found_text(*node));
    }
  };
  read("start_s", plan.deadlines.start_s);
  read("step_s", plan.deadlines.step_s);
  read("restore_s", plan.deadlines.restore_s);
  read("eval_s", plan.deadlines.eval_s);
  read("kill_s", plan.deadlines.kill_s);
}

Result<Plan> PlanFile::read(const std::vector<std::pair<std::string, std::string>>& settings,
                            const std::filesystem::path& tool_directory) {
  Plan plan;
  plan.file = file_;
  if (const toml::node* schema = require(table_, "schema")) {
    const std::string found = text(*schema, "schema");
    if (found != kSchema) {
      fail(*schema,
           "unknown schema; found " + in_quotes(found) + ", expected " + in_quotes(kSchema));
    }
  }
  allow(table_, {"schema", "name", "seed", "variables", "commands", "checkpoints", "steps",
                 "environment", "tolerance", "required", "waivers", "deadlines"});
  plan.name = file_.stem().string();
  if (const toml::node* name = table_.get("name")) plan.name = text(*name, "name");
  if (const toml::node* seed = table_.get("seed")) plan.seed = count(*seed, "seed");
  read_variables(plan, tool_directory);
  apply(plan, settings);
  read_commands(plan);
  read_steps(plan);
  read_environment(plan);
  read_tolerances(plan);
  read_policy(plan);
  read_deadlines(plan);
  if (error_) return *std::move(error_);
  return plan;
}

Result<std::string> read_plan_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code error;
  if (!stream || !std::filesystem::is_regular_file(file, error)) {
    return Error{ErrorKind::kUnreadable, "is no file that can be opened; expected a plan",
                 file.empty() ? "''" : file.string()};
  }
  std::string text(kPlanBytesMax + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kPlanBytesMax) {
    return Error{
        ErrorKind::kUsage,
        "too large for a plan; expected at most " + std::to_string(kPlanBytesMax) + " bytes",
        file.string()};
  }
  return text;
}

}  // namespace

Result<Plan> load_plan(const std::filesystem::path& file,
                       const std::vector<std::pair<std::string, std::string>>& settings,
                       const std::filesystem::path& tool_directory) {
  CKPTVERIFY_TRY(const std::string text, read_plan_text(file));
  try {
    PlanFile plan(file, toml::parse(text));
    return plan.read(settings, tool_directory);
  } catch (const toml::parse_error& error) {
    const toml::source_position where = error.source().begin;
    return Error{
        ErrorKind::kUsage, std::string(error.description()),
        file.string() + ":" + std::to_string(where.line) + ":" + std::to_string(where.column)};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kUsage, error.what(), file.string()};
  }
}

Result<std::vector<std::string>> expand(const Plan& plan, const CommandTemplate& command,
                                        const std::map<std::string, std::string>& values) {
  std::vector<std::string> expanded;
  for (const std::string& argument : command) {
    auto filled =
        fill_placeholders(argument, [&](const std::string& name) -> std::optional<std::string> {
          if (const auto value = values.find(name); value != values.end()) return value->second;
          const auto variable = plan.variables.find(name);
          if (variable == plan.variables.end()) return std::nullopt;
          return variable->second;
        });
    if (!filled) return std::move(filled).error().about(plan.file.string());
    expanded.push_back(*std::move(filled));
  }
  return expanded;
}

}  // namespace ckptverify
