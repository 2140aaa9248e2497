// What an opcode does to the stack, and the cells once they are read.
#include "formats/container/dcp_pickle.h"

#include <algorithm>
#include <utility>

#include "formats/container/dcp_pickle_machine.h"
#include "formats/encoding/pickle_text.h"

namespace ckptverify {

Result<Cell> CellMachine::pop() {
  if (stack_.size() <= floor()) return fault("takes from an empty stack");
  const Cell cell = unpacked_cell(stack_.back());
  stack_.pop_back();
  return cell;
}

Result<Cell> CellMachine::top() const {
  if (stack_.size() <= floor()) return fault("looks at an empty stack");
  return unpacked_cell(stack_.back());
}

Result<std::size_t> CellMachine::mark() {
  if (marks_.empty()) return fault("has no mark to go back to");
  const std::size_t begin = marks_.back();
  marks_.pop_back();
  return begin;
}

/// A new object of what lies on the stack from `begin` on.
Result<void> CellMachine::make(CellKind kind, std::size_t begin) {
  const std::size_t index = pickle_.objects_.size();
  if (index >= kCellsMax) return fault("makes too many objects");
  pickle_.objects_.push_back({static_cast<std::uint32_t>(pickle_.cells_.size()), 0, 0});
  const Cell made{kind, index};
  CKPTVERIFY_TRY_VOID(append(made, begin));
  push(made);
  return {};
}

/// Moves the stack from `begin` on into the object; its cells move when others lie behind them.
Result<void> CellMachine::append(Cell target, std::size_t begin) {
  if (begin > stack_.size()) return fault("takes from an empty stack");
  auto& cells = pickle_.cells_;
  CellPickle::Object& object = pickle_.objects_[target.payload];
  const std::size_t more = stack_.size() - begin;
  const std::uint64_t wanted = std::uint64_t{object.count} + more;
  if (cells.size() + 2 * wanted > kCellsMax) return fault("makes too many objects");
  if (wanted > object.capacity) {
    const bool last = std::uint64_t{object.first} + object.capacity == cells.size();
    // What grows once will grow again, unless it is all there at its making.
    const std::uint64_t capacity = object.count == 0 ? wanted : 2 * wanted;
    if (last) {
      cells.resize(object.first + capacity);
    } else {
      const std::size_t first = cells.size();
      cells.resize(first + capacity);
      std::copy_n(cells.begin() + object.first, object.count,
                  cells.begin() + static_cast<std::ptrdiff_t>(first));
      object.first = static_cast<std::uint32_t>(first);
    }
    object.capacity = static_cast<std::uint32_t>(capacity);
  }
  std::copy(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end(),
            cells.begin() + object.first + object.count);
  object.count = static_cast<std::uint32_t>(wanted);
  stack_.resize(begin);
  return {};
}

Result<void> CellMachine::text(std::uint64_t size) {
  const std::uint64_t offset = reader_.offset();
  CKPTVERIFY_TRY(const Bytes bytes, reader_.take(size));
  if (size > kCellTextSizeMax || offset >= kCellTextOffsetMax) return fault("has too long a text");
  if (!is_utf8(as_text(bytes), Surrogates::kAllowed)) return fault("has a text that is not UTF-8");
  push({CellKind::kText, offset << kCellTextSizeBits | size});
  return {};
}

Result<void> CellMachine::skip(std::uint64_t size) {
  CKPTVERIFY_TRY_VOID(reader_.take(size));
  push({CellKind::kOther});
  return {};
}

/// torch.Size((...)) is its tuple and OrderedDict() a dictionary; all else is its callable alone:
/// the arguments say nothing about a checkpoint's bytes.
Result<void> CellMachine::reduce(bool object) {
  CKPTVERIFY_TRY(const Cell arguments, pop());
  CKPTVERIFY_TRY(const Cell callable, top());
  const std::string_view name = pickle_.name(callable);
  if (!object && arguments.kind == CellKind::kTuple) {
    const std::size_t count = pickle_.count(arguments);
    if (name == "Size" && count == 1) {
      const Cell inner = pickle_.item(arguments, 0);
      if (inner.kind == CellKind::kTuple || inner.kind == CellKind::kList) {
        stack_.back() = packed_cell(inner);
        return {};
      }
    }
    if ((name == "OrderedDict" || name == "dict") && count == 0) {
      stack_.pop_back();
      return make(CellKind::kDict, stack_.size());
    }
    // PosixPath('/', 'a', 'b') and its like stay inert.
  }
  return make(CellKind::kObject, stack_.size() - 1);
}

Result<void> CellMachine::build() {
  CKPTVERIFY_TRY(const Cell state, pop());
  CKPTVERIFY_TRY(const Cell target, top());
  if (target.kind != CellKind::kObject) return {};  // attributes of a mapping
  push(state);
  return append(target, stack_.size() - 1);
}

/// APPEND, APPENDS, ADDITEMS, SETITEM, SETITEMS. What an object of an unknown class is given is
/// dropped.
Result<void> CellMachine::add(std::uint8_t opcode) {
  const bool pairs = opcode == 's' || opcode == 'u';
  std::size_t begin = 0;
  if (opcode == 'a' || opcode == 's') {
    const std::size_t wanted = pairs ? 2 : 1;
    if (stack_.size() - floor() < wanted) return fault("takes from an empty stack");
    begin = stack_.size() - wanted;
  } else {
    CKPTVERIFY_TRY(begin, mark());
  }
  if (pairs && (stack_.size() - begin) % 2 != 0) return fault("has a key without a value");
  if (begin <= floor()) return fault("adds to what is not there");
  const Cell target = unpacked_cell(stack_[begin - 1]);
  if (target.kind == (pairs ? CellKind::kDict : CellKind::kList)) return append(target, begin);
  stack_.resize(begin);
  if (target.kind == CellKind::kObject || target.kind == CellKind::kTuple) return {};
  return fault("adds items to what has none");
}

Result<void> CellMachine::put(std::uint64_t index) {
  CKPTVERIFY_TRY(const Cell cell, top());
  // Each is worth a byte of the pickle at least.
  if (index >= pickle_.bytes_.size()) return fault("remembers under too large a number");
  if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1, ~std::uint64_t{0});
  memo_[static_cast<std::size_t>(index)] = packed_cell(cell);
  return {};
}

Result<void> CellMachine::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == ~std::uint64_t{0})
    return fault("recalls what it did not remember; found memo index " + std::to_string(index) +
                 ", expected one of " + std::to_string(memo_.size()));
  stack_.push_back(memo_[static_cast<std::size_t>(index)]);
  return {};
}

Result<void> CellMachine::global() {
  for (int part = 0; part < 2; ++part) {
    const std::uint64_t offset = reader_.offset();
    CKPTVERIFY_TRY(const std::string_view line, reader_.line());
    if (!is_utf8(line, Surrogates::kAllowed)) return fault("has a name that is not UTF-8");
    if (line.size() > kCellTextSizeMax || offset >= kCellTextOffsetMax)
      return fault("has too long a name");
    push({CellKind::kText, offset << kCellTextSizeBits | line.size()});
  }
  return make(CellKind::kGlobal, stack_.size() - 2);
}

Result<CellPickle> CellPickle::read(Bytes bytes) {
  return CellMachine(bytes).run();
}

std::size_t CellPickle::count(Cell cell) const {
  return has_cells(cell) ? objects_[static_cast<std::size_t>(cell.payload)].count : 0;
}

Cell CellPickle::item(Cell cell, std::size_t index) const {
  CKPTVERIFY_ASSERT(index < count(cell));
  return unpacked_cell(cells_[objects_[static_cast<std::size_t>(cell.payload)].first + index]);
}

std::string_view CellPickle::text(Cell cell) const {
  if (cell.kind != CellKind::kText) return {};
  return as_text(bytes_).substr(static_cast<std::size_t>(cell.payload >> kCellTextSizeBits),
                                static_cast<std::size_t>(cell.payload & kCellTextSizeMax));
}

std::int64_t CellPickle::integer(Cell cell) const {
  const auto half = static_cast<std::int64_t>(cell.payload >> 1);
  return (cell.payload & 1) != 0 ? -half - 1 : half;
}

Cell CellPickle::find(Cell cell, std::string_view key) const {
  Cell found{CellKind::kNone};
  if (cell.kind == CellKind::kDict) {
    for (std::size_t i = 0; i + 1 < std::min(count(cell), 2 * kCellAttributesMax); i += 2)
      if (text(item(cell, i)) == key) found = item(cell, i + 1);
  }
  if (cell.kind != CellKind::kObject) return found;
  for (std::size_t i = 1; i < std::min(count(cell), kCellAttributesMax); ++i) {
    const Cell state = item(cell, i);
    if (state.kind == CellKind::kDict) found = find(state, key);
    // A class with slots: (None, {...}).
    if (state.kind == CellKind::kTuple && count(state) == 2 &&
        item(state, 1).kind == CellKind::kDict)
      found = find(item(state, 1), key);
    if (found.kind != CellKind::kNone) return found;
  }
  return found;
}

std::string_view CellPickle::name(Cell cell) const {
  if (cell.kind == CellKind::kObject) cell = item(cell, 0);
  return cell.kind == CellKind::kGlobal ? text(item(cell, 1)) : std::string_view();
}

std::string_view CellPickle::module(Cell cell) const {
  if (cell.kind == CellKind::kObject) cell = item(cell, 0);
  return cell.kind == CellKind::kGlobal ? text(item(cell, 0)) : std::string_view();
}

}  // namespace ckptverify
