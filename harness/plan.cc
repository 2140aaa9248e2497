// The plan file: TOML to Plan, strictly. Every key is known or an error, every error says where.

#include "ckptverify/plan.h"

#include <algorithm>
#include <optional>

#include "harness/placeholders.h"
#include "harness/toml_file.h"

namespace ckptverify {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kSchema = "ckptverify.plan/1";
constexpr std::size_t kVariableNameBytesMax = 64;

/// What a command may name besides the plan's own variables, and what it must.
struct CommandRule {
  std::string key;
  bool required;
  std::vector<std::string> allowed;
  std::vector<std::string> needed;
};

const CommandRule kTrain = {"train", true, {"run_dir"}, {"run_dir"}};
const CommandRule kResume = {
    "resume", true, {"run_dir", "checkpoint", "step"}, {"checkpoint", "run_dir"}};
const CommandRule kEval = {"eval", false, {"run_dir", "checkpoint", "step"}, {"checkpoint"}};
const std::vector<std::string> kPathNames = {"run_dir", "step"};
const std::vector<std::string> kStepMetrics = {"loss", "lr", "scale", "grad_norm"};
const std::vector<std::string> kReserved = {"run_dir",  "checkpoint", "step",
                                            "tool_dir", "plan_dir",   "seed"};

/// The plan being read. The first error stops it; readers of keys return nothing after that.
class PlanReader {
 public:
  PlanReader(TomlFile file, std::filesystem::path tool_directory)
      : file_(std::move(file)), tool_directory_(std::move(tool_directory)) {}

  Result<Plan> read(const Settings& settings);

 private:
  void read_variables(Plan& plan);
  void apply(Plan& plan, const Settings& settings);
  void read_commands(Plan& plan);
  CommandTemplate command(const Plan& plan, const toml::table& commands, const CommandRule& rule);
  void need_name(const toml::node& node, const CommandTemplate& command, const std::string& key,
                 const std::string& placeholder);
  void read_checkpoints(Plan& plan);
  void read_component_rules(Plan& plan, const toml::node& node);
  void check_inside(const Plan& plan, const toml::node& node);
  void read_steps(Plan& plan);
  void read_environment(Plan& plan);
  void read_tolerances(Plan& plan);
  Tolerance tolerance(const toml::table& table);
  void read_required(Plan& plan);
  void read_waivers(Plan& plan);
  void read_deadlines(Plan& plan);
  void check_names(const Plan& plan, const toml::node& node, const std::string& text,
                   std::vector<std::string> allowed);

  TomlFile file_;
  std::filesystem::path tool_directory_;
};

void PlanReader::read_variables(Plan& plan) {
  if (const toml::table* variables = file_.section(file_.table(), "variables")) {
    for (const auto& [key, node] : *variables) {
      const std::string name(key.str());
      if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
        file_.fail(key.source(),
                   in_quotes(name) + " is a name of the plan itself, not for a variable");
      }
      if (name.empty() || name.size() > kVariableNameBytesMax ||
          name.find_first_of("{}") != std::string::npos) {
        file_.fail(key.source(), in_quotes(name) + " cannot be a variable's name");
      }
      if (const auto whole = node.value_exact<std::int64_t>()) {
        plan.variables[name] = std::to_string(*whole);
      } else {
        plan.variables[name] = file_.text(node, name);
      }
    }
  }
  plan.variables["tool_dir"] = tool_directory_.string();
  std::error_code error;
  const auto absolute = std::filesystem::absolute(file_.path(), error);
  plan.variables["plan_dir"] = absolute.lexically_normal().parent_path().string();
  plan.variables["seed"] = std::to_string(plan.seed);
}

void PlanReader::apply(Plan& plan, const Settings& settings) {
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
    file_.fail(toml::source_region{}, "--set " + name +
                                          ": the plan declares no such variable; it has " +
                                          (known.empty() ? "none" : join(known)));
  }
}

void PlanReader::check_names(const Plan& plan, const toml::node& node, const std::string& text,
                             std::vector<std::string> allowed) {
  for (const auto& [name, ignored] : plan.variables) allowed.push_back(name);
  const auto names = placeholder_names(text);
  if (!names) {
    file_.fail(node, names.error().message);
    return;
  }
  for (const std::string& name : *names) {
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
    const std::string nearest = nearest_word(name, allowed);
    file_.fail(node, "unknown placeholder {" + name + "}; expected " +
                         (nearest.empty() ? "one of " + join(allowed) : "{" + nearest + "}"));
  }
}

void PlanReader::read_commands(Plan& plan) {
  const toml::node* node = file_.require(file_.table(), "commands");
  const toml::table* commands = file_.section(file_.table(), "commands");
  if (node == nullptr || commands == nullptr) return;
  file_.allow(*commands, {kTrain.key, kResume.key, kEval.key});
  plan.train = command(plan, *commands, kTrain);
  plan.resume = command(plan, *commands, kResume);
  plan.eval = command(plan, *commands, kEval);
}

CommandTemplate PlanReader::command(const Plan& plan, const toml::table& commands,
                                    const CommandRule& rule) {
  const toml::node* node =
      rule.required ? file_.require(commands, rule.key) : commands.get(rule.key);
  if (node == nullptr) return {};
  CommandTemplate command = file_.texts(*node, rule.key);
  if (command.empty() || command.front().empty()) {
    file_.fail(*node, in_quotes(rule.key) + " must have at least the program; found none");
  }
  for (std::size_t index = 0; !file_.error() && index < command.size(); ++index) {
    check_names(plan, *node->as_array()->get(index), command[index], rule.allowed);
  }
  for (const std::string& placeholder : rule.needed) {
    need_name(*node, command, rule.key, placeholder);
  }
  return command;
}

/// A command that is not told this can only work by accident.
void PlanReader::need_name(const toml::node& node, const CommandTemplate& command,
                           const std::string& key, const std::string& placeholder) {
  if (file_.error()) return;
  for (const std::string& word : command) {
    const auto names = placeholder_names(word);
    if (names && std::find(names->begin(), names->end(), placeholder) != names->end()) return;
  }
  file_.fail(node,
             in_quotes(key) + " must be told {" + placeholder + "}; found no word that names it");
}

void PlanReader::read_checkpoints(Plan& plan) {
  const toml::table* checkpoints = file_.section(file_.table(), "checkpoints");
  if (checkpoints == nullptr) return file_.fail(file_.table(), "there is no table [checkpoints]");
  file_.allow(*checkpoints, {"path", "components"});
  if (const toml::node* path = file_.require(*checkpoints, "path")) {
    plan.checkpoint_pattern = file_.text(*path, "path");
    check_names(plan, *path, plan.checkpoint_pattern, kPathNames);
    check_inside(plan, *path);
  }
  if (const toml::node* rules = checkpoints->get("components")) read_component_rules(plan, *rules);
}

void PlanReader::read_component_rules(Plan& plan, const toml::node& node) {
  for (const std::string& text : file_.texts(node, "components")) {
    Result<ComponentRule> rule = component_rule(text);
    if (!rule) return file_.fail(node, "'components': " + rule.error().text());
    plan.component_rules.push_back(*std::move(rule));
  }
}

void PlanReader::check_inside(const Plan& plan, const toml::node& node) {
  if (file_.error()) return;
  const std::string run = "/run";
  const auto path =
      expand(plan, {plan.checkpoint_pattern}, {{"run_dir", run}, {"step", std::to_string(1)}});
  if (!path) return;
  const auto inside =
      std::filesystem::path(path->front()).lexically_normal().lexically_relative(run);
  if (!inside.empty() && inside != "." && *inside.begin() != "..") return;
  file_.fail(node,
             "'path' must lie in {run_dir}, which is another directory in every phase; found " +
                 in_quotes(plan.checkpoint_pattern));
}

void PlanReader::read_steps(Plan& plan) {
  const toml::table* steps = file_.section(file_.table(), "steps");
  if (steps == nullptr) return file_.fail(file_.table(), "there is no table [steps]");
  file_.allow(*steps, {"save", "final", "horizon"});
  const auto read = [&](const char* name, std::uint64_t& step) {
    if (const toml::node* node = file_.require(*steps, name)) step = file_.count(*node, name);
  };
  read("save", plan.save_step);
  read("final", plan.final_step);
  read("horizon", plan.horizon);
  if (file_.error()) return;
  if (plan.save_step == 0) file_.fail(*steps->get("save"), "'save' must be 1 or more; found 0");
  if (plan.save_step >= plan.final_step) {
    file_.fail(*steps->get("final"), "'final' must come after 'save'; found " +
                                         std::to_string(plan.final_step) + ", expected more than " +
                                         std::to_string(plan.save_step));
  }
  if (plan.horizon <= plan.final_step) {
    file_.fail(*steps->get("horizon"),
               "'horizon' must leave a step after 'final', so that nothing ends by itself; found " +
                   std::to_string(plan.horizon) + ", expected at least " +
                   std::to_string(plan.final_step + 1));
  }
}

void PlanReader::read_environment(Plan& plan) {
  const toml::table* environment = file_.section(file_.table(), "environment");
  if (environment == nullptr) return;
  for (const auto& [key, node] : *environment) {
    const std::string name(key.str());
    if (name.empty() || name.find('=') != std::string::npos ||
        name.starts_with("CKPTVERIFY_EVENTS") || name.starts_with("CKPTVERIFY_HOLD") ||
        name.starts_with("CKPTVERIFY_GATE")) {
      file_.fail(key.source(), in_quotes(name) + " cannot be set here");
    }
    const std::string value = file_.text(node, name);
    check_names(plan, node, value, {});
    if (file_.error()) return;
    const auto filled = fill_placeholders(value, [&](const std::string& wanted) {
      const auto found = plan.variables.find(wanted);
      return found == plan.variables.end() ? std::nullopt : std::optional(found->second);
    });
    plan.environment[name] = filled ? *filled : value;
  }
}

Tolerance PlanReader::tolerance(const toml::table& table) {
  file_.allow(table, {"relative", "absolute"});
  Tolerance read;
  if (const toml::node* node = table.get("relative"))
    read.relative = file_.amount(*node, "relative");
  if (const toml::node* node = table.get("absolute"))
    read.absolute = file_.amount(*node, "absolute");
  return read;
}

void PlanReader::read_tolerances(Plan& plan) {
  const toml::table* all = file_.section(file_.table(), "tolerance");
  if (all == nullptr) return;
  file_.allow(*all, {"tensors", "metrics"});
  if (const toml::table* tensors = file_.section(*all, "tensors"))
    plan.tensors = tolerance(*tensors);
  const toml::table* metrics = file_.section(*all, "metrics");
  if (metrics == nullptr) return;
  for (const auto& [key, node] : *metrics) {
    const std::string name(key.str());
    if (!name.starts_with("eval.") &&
        std::find(kStepMetrics.begin(), kStepMetrics.end(), name) == kStepMetrics.end()) {
      file_.fail(key.source(), "unknown metric " + in_quotes(name) + "; expected one of " +
                                   join(kStepMetrics) + ", or eval.<name>");
    }
    if (const toml::table* table = file_.section(*metrics, name))
      plan.metrics[name] = tolerance(*table);
  }
}

void PlanReader::read_required(Plan& plan) {
  const toml::table* required = file_.section(file_.table(), "required");
  if (required == nullptr) return;
  file_.allow(*required, {"components"});
  const toml::node* node = required->get("components");
  if (node == nullptr) return;
  std::vector<std::string> known;
  for (const Component component : components()) known.emplace_back(component_name(component));
  for (const std::string& name : file_.texts(*node, "components")) {
    if (const auto component = component_named(name)) {
      plan.required.push_back(*component);
    } else {
      file_.fail(*node,
                 "unknown component " + in_quotes(name) + "; expected one of " + join(known));
    }
  }
}

void PlanReader::read_waivers(Plan& plan) {
  const toml::node* waivers = file_.table().get("waivers");
  if (waivers == nullptr) return;
  if (!waivers->is_array()) return file_.fail(*waivers, "'waivers' must be [[waivers]] tables");
  for (const toml::node& node : *waivers->as_array()) {
    const toml::table* table = node.as_table();
    if (table == nullptr) return file_.fail(node, "'waivers' must be [[waivers]] tables");
    file_.allow(*table, {"check", "reason"});
    Waiver waiver;
    if (const toml::node* check = file_.require(*table, "check"))
      waiver.check = file_.text(*check, "check");
    if (const toml::node* reason = file_.require(*table, "reason")) {
      waiver.reason = file_.text(*reason, "reason");
      if (waiver.reason.find_first_not_of(" \t\n") == std::string::npos)
        file_.fail(*reason, "a waiver needs its reason; found none");
    }
    plan.waivers.push_back(std::move(waiver));
  }
}

void PlanReader::read_deadlines(Plan& plan) {
  const toml::table* deadlines = file_.section(file_.table(), "deadlines");
  if (deadlines == nullptr) return;
  file_.allow(*deadlines, {"start_s", "step_s", "restore_s", "eval_s", "kill_s"});
  const auto read = [&](const char* name, double& seconds) {
    const toml::node* node = deadlines->get(name);
    if (node == nullptr) return;
    seconds = file_.amount(*node, name);
    if (seconds <= 0) file_.fail(*node, in_quotes(name) + " must be more than 0; found 0");
    if (seconds > 7 * 86400.0) {
      file_.fail(*node, in_quotes(name) + " must be a week at most; found " + found_text(*node));
    }
  };
  read("start_s", plan.deadlines.start_s);
  read("step_s", plan.deadlines.step_s);
  read("restore_s", plan.deadlines.restore_s);
  read("eval_s", plan.deadlines.eval_s);
  read("kill_s", plan.deadlines.kill_s);
}

Result<Plan> PlanReader::read(const Settings& settings) {
  Plan plan;
  plan.file = file_.path();
  if (const toml::node* schema = file_.require(file_.table(), "schema")) {
    const std::string found = file_.text(*schema, "schema");
    if (found != kSchema) {
      file_.fail(*schema,
                 "unknown schema; found " + in_quotes(found) + ", expected " + in_quotes(kSchema));
    }
  }
  file_.allow(file_.table(),
              {"schema", "name", "seed", "variables", "commands", "checkpoints", "steps",
               "environment", "tolerance", "required", "waivers", "deadlines"});
  plan.name = file_.path().stem().string();
  if (const toml::node* name = file_.table().get("name")) plan.name = file_.text(*name, "name");
  if (const toml::node* seed = file_.table().get("seed")) plan.seed = file_.count(*seed, "seed");
  read_variables(plan);
  apply(plan, settings);
  read_commands(plan);
  read_checkpoints(plan);
  read_steps(plan);
  read_environment(plan);
  read_tolerances(plan);
  read_required(plan);
  read_waivers(plan);
  read_deadlines(plan);
  if (file_.error()) return *file_.error();
  return plan;
}

}  // namespace

Result<Plan> load_plan(const std::filesystem::path& file, const Settings& settings,
                       const std::filesystem::path& tool_directory) {
  CKPTVERIFY_TRY(TomlFile toml, TomlFile::open(file));
  return PlanReader(std::move(toml), tool_directory).read(settings);
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
