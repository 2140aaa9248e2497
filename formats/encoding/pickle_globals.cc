#include "formats/encoding/pickle_globals.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace ckptverify {
namespace {

// Everything of these modules (and of those below them): what they do, they do to the machine.
constexpr std::array<std::string_view, 36> kDangerousModules = {
    "os",     "posix",     "nt",      "sys",      "subprocess", "_posixsubprocess",
    "socket", "_socket",   "shutil",  "ctypes",   "_ctypes",    "importlib",
    "imp",    "runpy",     "pty",     "commands", "code",       "codeop",
    "bdb",    "pdb",       "timeit",  "cProfile", "profile",    "trace",
    "pickle", "_pickle",   "marshal", "shelve",   "dill",       "webbrowser",
    "pip",    "ensurepip", "io",      "_io",      "types",      "torch.hub"};

constexpr std::array<std::string_view, 27> kDangerousNames = {
    "builtins.eval",
    "builtins.exec",
    "builtins.execfile",
    "builtins.compile",
    "builtins.__import__",
    "builtins.open",
    "builtins.file",
    "builtins.input",
    "builtins.raw_input",
    "builtins.setattr",
    "builtins.delattr",
    "builtins.globals",
    "builtins.locals",
    "builtins.vars",
    "builtins.apply",
    "builtins.breakpoint",
    "builtins.help",
    "builtins.map",
    "builtins.filter",
    "operator.attrgetter",
    "operator.methodcaller",
    "torch.load",
    "torch.serialization.load",
    "torch.jit.load",
    "numpy.load",
    "numpy.testing._private.utils.runstring",
    "functools.reduce"};

// What every PyTorch installation has.
constexpr std::array<std::string_view, 22> kAtHome = {
    "torch",    "numpy",     "builtins", "collections", "copyreg",   "_codecs",
    "argparse", "datetime",  "pathlib",  "enum",        "functools", "random",
    "decimal",  "fractions", "uuid",     "operator",    "itertools", "typing",
    "string",   "math",      "logging",  "__torch__"};

bool is_below(std::string_view name, std::string_view module) {
  return name.size() > module.size() && name.starts_with(module) && name[module.size()] == '.';
}

std::string usual_module(std::string_view module) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kRenamed = {{
      {"__builtin__", "builtins"},
      {"copy_reg", "copyreg"},
      {"cPickle", "pickle"},
      {"pathlib._local", "pathlib"},
      {"exceptions", "builtins"},
      {"torch.tensor", "torch._tensor"},
  }};
  for (const auto& [old_name, name] : kRenamed) {
    if (module == old_name) return std::string(name);
  }
  constexpr std::string_view kNumpy2 = "numpy._core";
  if (module == kNumpy2 || is_below(module, kNumpy2)) {
    return "numpy.core" + std::string(module.substr(kNumpy2.size()));
  }
  return std::string(module);
}

bool is_at_home(std::string_view name) {
  return std::any_of(kAtHome.begin(), kAtHome.end(),
                     [&](std::string_view module) { return is_below(name, module); });
}

/// getattr(Class, "NAME") is how some Pythons write an enumeration's member; getattr of anything
/// else walks to what the pickle does not name.
bool is_getattr_chain(const PickleNode& node) {
  if (node.kind != PickleKind::kCall || callee(node) != "builtins.getattr") return false;
  const PickleNode* object = argument(node, 0);
  return object == nullptr || object->kind != PickleKind::kGlobal;
}

Finding dangerous(const std::string& name, std::uint64_t offset) {
  return {.check = "static.pickle",
          .status = Status::kFail,
          .cause = Cause{CauseKind::kPickleDep},
          .subject = name,
          .message = "byte " + std::to_string(offset) + ": the pickle calls for " + name +
                     ", which loading it would run",
          .evidence = {{"global", name}, {"offset", std::to_string(offset)}}};
}

}  // namespace

std::string qualified_name(const PickleNode& node) {
  if (node.kind == PickleKind::kPersistent) {
    // ('module', class, source file, source): the class.
    const PickleItems id = node.items()[0]->items();
    const bool type =
        id.size() >= 2 && id[0]->string() == "module" && id[1]->kind == PickleKind::kGlobal;
    return type ? qualified_name(*id[1]) : std::string();
  }
  if (node.kind != PickleKind::kGlobal) return {};
  const std::string_view name =
      node.is_global("__builtin__", "xrange") ? std::string_view("range") : node.name();
  return usual_module(node.module()) + "." + std::string(name);
}

std::string callee(const PickleNode& node) {
  if (node.kind != PickleKind::kCall && node.kind != PickleKind::kObject) return {};
  return qualified_name(*node.items()[0]);
}

const PickleNode* argument(const PickleNode& node, std::size_t index) {
  if (node.kind != PickleKind::kCall && node.kind != PickleKind::kObject) return nullptr;
  const PickleNode& arguments = *node.items()[1];
  if (arguments.kind != PickleKind::kTuple || index >= arguments.items().size()) return nullptr;
  return arguments.items()[index];
}

bool is_dangerous(std::string_view name) {
  return std::find(kDangerousNames.begin(), kDangerousNames.end(), name) != kDangerousNames.end() ||
         std::any_of(kDangerousModules.begin(), kDangerousModules.end(),
                     [&](std::string_view module) { return is_below(name, module); });
}

std::vector<Finding> judge_globals(const PickleTree& tree) {
  std::map<std::string, std::uint64_t> bad;
  std::set<std::string> foreign;
  for (const PickleNode& node : tree.nodes()) {
    if (is_getattr_chain(node)) bad.emplace("builtins.getattr", node.offset);
    if (node.kind != PickleKind::kGlobal) continue;
    const std::string name = qualified_name(node);
    if (is_dangerous(name)) {
      bad.emplace(name, node.offset);
    } else if (!is_at_home(name)) {
      foreign.insert(name);
    }
  }
  std::vector<Finding> findings;
  for (const auto& [name, offset] : bad) findings.push_back(dangerous(name, offset));
  if (!foreign.empty()) {
    Finding finding{.check = "static.pickle",
                    .status = Status::kWarn,
                    .message = "loading needs classes beyond PyTorch, NumPy and Python: " +
                               std::to_string(foreign.size())};
    for (const std::string& name : foreign) finding.evidence.push_back({"class", name});
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ckptverify
