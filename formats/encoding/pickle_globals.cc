#include "formats/encoding/pickle_globals.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "ckptverify/count_text.h"

namespace ckptverify {
namespace {

// Names of a kind that are listed one by one; a hostile file could have as many as it likes.
constexpr std::size_t kShownMax = 64;

// Everything of these modules (and of those below them): what they do, they do to the machine.
constexpr std::string_view kDangerousModules =
    " os posix nt ntpath posixpath sys subprocess pty commands _posixsubprocess socket "
    "_socket ssl asyncio http httplib urllib urllib2 requests aiohttp ftplib smtplib "
    "telnetlib xmlrpc webbrowser shutil tempfile signal ctypes _ctypes importlib imp "
    "zipimport pkgutil runpy code codeop bdb pdb timeit cProfile profile trace doctest pydoc "
    "pickle _pickle marshal shelve cloudpickle pip ensurepip venv distutils setuptools "
    "threading _thread gc inspect multiprocessing idlelib lib2to3 linecache winreg msvcrt "
    "torch.hub torch.package torch.utils.cpp_extension torch.distributed.rpc "
    "torch.utils.model_zoo numpy.f2py numpy.testing numpy.distutils ";

constexpr std::string_view kDangerousNames =
    " builtins.eval builtins.exec builtins.execfile builtins.compile builtins.__import__ "
    "builtins.open builtins.file builtins.input builtins.raw_input builtins.setattr "
    "builtins.delattr builtins.globals builtins.locals builtins.vars builtins.apply "
    "builtins.breakpoint builtins.help builtins.map builtins.filter io.open io.open_code "
    "io.FileIO _io.open _io.open_code _io.FileIO types.CodeType types.FunctionType "
    "types.LambdaType types.ModuleType types.MethodType operator.attrgetter "
    "operator.methodcaller functools.reduce logging.config uuid._get_command_stdout "
    "collections.namedtuple dill._dill._create_function dill._dill._create_code "
    "dill._dill._import_module dill._dill._eval_repr dill.loads dill.load joblib.load "
    "torch.load torch.serialization.load torch.jit.load "
    "torch.jit.unsupported_tensor_ops.execWrapper torch._utils._import_dotted_name "
    "numpy.load ";

// Modules that every module of Python reaches by their own name ("torch.os.system"), and attributes
// that lead from any object to everything else.
constexpr std::string_view kWaysOut =
    " os sys subprocess posix shutil socket ctypes importlib builtins pickle runpy pty "
    "__builtins__ __globals__ __import__ __subclasses__ __getattribute__ __reduce__ "
    "__reduce_ex__ __code__ __mro__ __bases__ __base__ __dict__ __class__ __init__ "
    "__closure__ __loader__ __spec__ ";

// What every PyTorch installation has.
constexpr std::array<std::string_view, 22> kAtHome = {
    "torch",    "numpy",     "builtins", "collections", "copyreg",   "_codecs",
    "argparse", "datetime",  "pathlib",  "enum",        "functools", "random",
    "decimal",  "fractions", "uuid",     "operator",    "itertools", "typing",
    "string",   "math",      "logging",  "__torch__"};

using Words = std::unordered_set<std::string_view>;

Words words_of(std::string_view list) {
  Words words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end > 0) words.insert(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

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

/// Whether a part of a dotted name leads out of the module that it is looked up in.
bool leads_out(std::string_view name) {
  static const Words ways_out = words_of(kWaysOut);
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (ways_out.contains(part)) return true;
    begin = end + 1;
  }
  return false;
}

/// getattr(Class, "NAME") is how some Pythons write an enumeration's member, and getattr(object,
/// "name") how all write a bound method; a chain of them walks to what the pickle does not name.
/// The name of a dangerous one, or nothing.
std::string dangerous_attribute(const PickleNode& node) {
  const bool call = node.kind == PickleKind::kCall && node.items()[0]->name() == "getattr";
  if (!call || callee(node) != "builtins.getattr") return {};
  const PickleNode* object = argument(node, 0);
  const PickleNode* attribute = argument(node, 1);
  const auto text = attribute == nullptr ? std::nullopt : attribute->string();
  const bool named = object != nullptr && object->kind == PickleKind::kGlobal;
  const bool made = object != nullptr && object->items().size() >= 2 &&
                    callee(*object) != "builtins.getattr" && !callee(*object).empty();
  if (!text || text->size() > kPickleNameMax || (!named && !made) || (made && leads_out(*text)))
    return "builtins.getattr";
  const std::string name = qualified_name(*object) + "." + std::string(*text);
  return named && (leads_out(*text) || is_dangerous(name)) ? name : std::string();
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
  static const Words names = words_of(kDangerousNames);
  static const Words modules = words_of(kDangerousModules);
  if (names.contains(name)) return true;
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (modules.contains(name.substr(0, dot))) return true;
  }
  return false;
}

std::vector<Finding> judge_globals(const PickleTree& tree) {
  std::map<std::string, std::uint64_t> bad;
  std::set<std::string> foreign;
  for (const PickleNode& node : tree.nodes()) {
    if (auto name = dangerous_attribute(node); !name.empty()) {
      bad.emplace(std::move(name), node.offset);
    }
    if (node.kind != PickleKind::kGlobal) continue;
    const std::string name = qualified_name(node);
    if (is_dangerous(name) || leads_out(node.name())) {
      bad.emplace(name, node.offset);
    } else if (!is_at_home(name)) {
      foreign.insert(name);
    }
  }
  std::vector<Finding> findings;
  for (const auto& [name, offset] : bad) {
    if (findings.size() == kShownMax) break;
    findings.push_back(dangerous(name, offset));
  }
  if (!foreign.empty()) {
    Finding finding{.check = "static.pickle",
                    .status = Status::kWarn,
                    .message = "loading needs " + count_text(foreign.size(), "class", "classes") +
                               " beyond PyTorch, NumPy and Python, the first is " +
                               *foreign.begin()};
    for (const std::string& name : foreign) {
      if (finding.evidence.size() < kShownMax) finding.evidence.push_back({"class", name});
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ckptverify
