// A pickle (protocols 0 to 5) as a tree of inert nodes: what the program would build, with every
// class, call and persistent id left as a name. Nothing is imported, called or executed. Nodes may
// be shared and may form cycles; the tree owns them all.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"
#include "ckptverify/value.h"

namespace ckptverify {

/// A walk over nodes goes no deeper. Python's own pickler stops at about 1000 levels of its own
/// recursion, three a level of nesting.
inline constexpr unsigned kPickleDepthMax = 400;

enum class PickleKind {
  kScalar,      // value: null, bool, int, float, string or bytes
  kByteArray,   // value: bytes
  kList,        // items
  kTuple,       // items
  kSet,         // items
  kFrozenSet,   // items
  kDict,        // pairs
  kGlobal,      // module and name, as written
  kCall,        // REDUCE: items = {callable, arguments}; then state, items and pairs added later
  kObject,      // NEWOBJ, INST, OBJ: items = {class, arguments[, keyword arguments]}; likewise
  kPersistent,  // items = {id}
  kBuffer,      // out-of-band data that the pickle does not have
};

struct PickleNode {
  PickleKind kind = PickleKind::kScalar;
  std::uint64_t offset = 0;  // absolute, of the opcode that made it
  Value value = Null{};
  std::string module = {};  // of a global
  std::string name = {};
  std::vector<PickleNode*> items = {};
  std::vector<PickleNode*> added = {};                          // APPENDS, ADDITEMS on an object
  std::vector<std::pair<PickleNode*, PickleNode*>> pairs = {};  // SETITEMS
  std::vector<PickleNode*> states = {};                         // BUILD, in order

  const std::string* string() const { return std::get_if<std::string>(&value); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&value); }
  const bool* boolean() const { return std::get_if<bool>(&value); }
  const double* number() const { return std::get_if<double>(&value); }
  bool is_none() const {
    return kind == PickleKind::kScalar && std::holds_alternative<Null>(value);
  }
  bool is_global(std::string_view module_name, std::string_view global_name) const {
    return kind == PickleKind::kGlobal && module == module_name && name == global_name;
  }
};

class PickleTree {
 public:
  const PickleNode& root() const { return *root_; }
  PickleNode& root() { return *root_; }
  /// Absolute offset of the first byte after STOP.
  std::uint64_t end() const { return end_; }
  /// Every node that the program made, kept or thrown away.
  const std::deque<PickleNode>& nodes() const { return nodes_; }
  /// For who rewrites the tree.
  PickleNode& add(PickleNode node) { return nodes_.emplace_back(std::move(node)); }

 private:
  friend class PickleMachine;
  std::deque<PickleNode> nodes_;
  PickleNode* root_ = nullptr;
  std::uint64_t end_ = 0;
};

/// One pickle at the beginning of `bytes`; offsets are `base` + position. Errors: kBitrot for an
/// unknown opcode, an operand that breaks its rules or a stack that does not fit; kTrunc where the
/// bytes end before STOP.
Result<PickleTree> read_pickle(Bytes bytes, std::uint64_t base = 0);

}  // namespace ckptverify
