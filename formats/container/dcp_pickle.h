// A pickle of protocol 2 to 5 as cells of eight bytes: what the metadata of a save of thousands of
// ranks needs, whose millions of objects would not fit into a general tree. Texts are views of the
// pickle's bytes, which must outlive it. Nothing is imported or called; what an unknown class keeps
// besides its state is dropped.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ckptverify/bytes.h"
#include "ckptverify/result.h"

namespace ckptverify {

enum class CellKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,  // that fits 59 bits
  kText,
  kOther,   // a float, bytes, a larger integer: nothing that metadata has a use for
  kTuple,   // items
  kList,    // items
  kDict,    // keys and values in turn
  kGlobal,  // module, name
  kObject,  // class, then the states that BUILD set; calls alike
};

struct Cell {
  CellKind kind = CellKind::kNone;
  std::uint64_t payload = 0;  // a number, a place of text, or the index of an object
};

class CellPickle {
 public:
  /// Errors: kBitrot for what no pickle of these protocols says, kTrunc where it ends before STOP.
  static Result<CellPickle> read(Bytes bytes);

  Cell root() const { return root_; }
  std::uint64_t end() const { return end_; }  // the first byte after STOP
  /// Items, keys and values, or class and states; empty for a scalar.
  std::size_t count(Cell cell) const;
  Cell item(Cell cell, std::size_t index) const;
  std::string_view text(Cell cell) const;  // empty for what is none
  std::int64_t integer(Cell cell) const;
  /// The value of a text key: of a dictionary, or of the last of an object's states that is one.
  Cell find(Cell cell, std::string_view key) const;
  /// The name of a global, or of an object's class, without its module.
  std::string_view name(Cell cell) const;
  std::string_view module(Cell cell) const;

 private:
  friend class CellMachine;
  struct Object {
    std::uint32_t first = 0;  // into cells_
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;
  };
  Bytes bytes_;
  std::vector<Object> objects_;
  std::vector<std::uint64_t> cells_;  // packed
  Cell root_;
  std::uint64_t end_ = 0;
};

}  // namespace ckptverify
