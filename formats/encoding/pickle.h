// A pickle (protocols 0 to 5) as a tree of inert nodes: what the program would build, with every
// class, call and persistent id left as a name. Nothing is imported, called or executed. Nodes may
// be shared and may form cycles; the tree owns them all, and their text is a view of the pickle.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"
#include "ckptverify/value.h"
#include "formats/encoding/pickle_arena.h"

namespace ckptverify {

/// A walk over nodes goes no deeper. Python's own pickler stops at about 1000 levels of its own
/// recursion, three a level of nesting.
inline constexpr unsigned kPickleDepthMax = 400;

/// A class's module or name is no longer: it is looked at and kept wherever the class is used.
inline constexpr std::size_t kPickleNameMax = 1024;

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,
  kBigInteger,
  kFloat,
  kString,
  kBytes,
  kByteArray,
  kList,        // items
  kTuple,       // items
  kSet,         // items
  kFrozenSet,   // items
  kDict,        // pairs
  kGlobal,      // module and name, as written
  kCall,        // REDUCE: items = {callable, arguments}; then states, pairs and added
  kObject,      // NEWOBJ, INST, OBJ: items = {class, arguments[, keyword arguments]}; likewise
  kPersistent,  // items = {id}
  kBuffer,      // out-of-band data that the pickle does not have
};

class PickleNode;
using PicklePair = std::pair<PickleNode*, PickleNode*>;
using PickleItems = std::span<PickleNode* const>;

/// 24 bytes, and what it holds: metadata of large runs has millions of nodes.
class PickleNode {
 public:
  PickleKind kind = PickleKind::kNone;

 private:
  std::uint32_t size_ = 0;  // of the text, items or pairs; here it fills the gap before the offset

 public:
  std::uint64_t offset = 0;  // absolute, of the opcode that made it

  bool is_scalar() const { return kind <= PickleKind::kByteArray; }
  bool is_none() const { return kind == PickleKind::kNone; }
  bool is_global(std::string_view module_name, std::string_view global_name) const {
    return module() == module_name && name() == global_name;
  }
  std::optional<std::string_view> string() const;
  std::optional<Bytes> bytes() const;  // also of a bytearray
  std::optional<std::int64_t> integer() const;
  std::optional<bool> boolean() const;
  std::optional<double> number() const;
  /// Of a scalar; null for everything else.
  Value value() const;

  std::string_view module() const;  // of a global; empty for everything else
  std::string_view name() const;
  PickleItems items() const;
  std::span<const PicklePair> pairs() const;  // of a dictionary; SETITEMS on an object
  PickleItems added() const;                  // APPENDS, ADDITEMS on an object
  PickleItems states() const;                 // BUILD, in order

 private:
  friend class PickleTree;
  struct Name {
    std::string_view module, name;
  };
  /// What few objects have. Sizes beside the arrays, whose capacity is the next power of two.
  struct Extras {
    PicklePair* pairs;
    PickleNode** added;
    PickleNode** states;
    std::uint32_t pair_count, added_count, state_count;
  };
  struct Body {
    PickleNode* items[3];
    PickleNode* state;  // the only one; null for none, or where they are in the extras
    Extras* extras;
  };
  union Content {
    std::int64_t integer;
    double number;
    const char* text;
    const Value* value;
    PickleNode** items;
    PickleNode* only;
    PicklePair* pairs;
    const Name* name;
    Body* body;
  };
  bool has_body() const { return kind == PickleKind::kCall || kind == PickleKind::kObject; }

  Content content_ = {.integer = 0};
};

class PickleTree {
 public:
  const PickleNode& root() const { return *root_; }
  PickleNode& root() { return *root_; }
  /// Absolute offset of the first byte after STOP.
  std::uint64_t end() const { return end_; }
  /// Every node that the program made, kept or thrown away.
  const std::deque<PickleNode>& nodes() const { return nodes_; }

  // For the machine, and for who rewrites the tree. Text is a view that must outlive the tree:
  // of the pickle, or kept.
  PickleNode& add(PickleKind kind, std::uint64_t offset);
  PickleNode& add_bool(bool value, std::uint64_t offset);
  PickleNode& add_integer(std::int64_t value, std::uint64_t offset);
  PickleNode& add_float(double value, std::uint64_t offset);
  PickleNode& add_value(Value value, std::uint64_t offset);  // an integer of any size
  PickleNode& add_text(PickleKind kind, Bytes text, std::uint64_t offset);
  PickleNode& add_sequence(PickleKind kind, PickleItems items, std::uint64_t offset);
  PickleNode& add_dict(std::span<const PicklePair> pairs, std::uint64_t offset);
  PickleNode& add_global(std::string_view module, std::string_view name, std::uint64_t offset);
  PickleNode& add_persistent(PickleNode& id, std::uint64_t offset);
  /// A call or an object; at most three items.
  PickleNode& add_object(PickleKind kind, PickleItems items, std::uint64_t offset);
  void append(PickleNode& target, PickleItems items);
  /// Keys and values in turn.
  void set_items(PickleNode& target, PickleItems flat);
  void add_state(PickleNode& target, PickleNode& state);
  std::string_view keep(std::string_view text);
  /// Bytes that the nodes' text may be views of.
  Bytes keep(std::vector<std::byte> bytes);

 private:
  friend class PickleMachine;
  PickleNode::Extras& extras_of(PickleNode& object);

  std::deque<PickleNode> nodes_;
  std::deque<Value> values_;
  std::deque<std::vector<std::byte>> kept_;
  PickleArena arena_;
  PickleNode* root_ = nullptr;
  std::uint64_t end_ = 0;
};

/// One pickle at the beginning of `bytes`, which must outlive the tree; offsets are `base` +
/// position. Errors: kBitrot for an unknown opcode, an operand that breaks its rules or a stack
/// that does not fit; kTrunc where the bytes end before STOP.
Result<PickleTree> read_pickle(Bytes bytes, std::uint64_t base = 0);
/// The same; the tree keeps the bytes.
Result<PickleTree> read_pickle(std::vector<std::byte> bytes, std::uint64_t base = 0);

}  // namespace ckptverify
