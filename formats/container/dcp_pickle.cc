// The machine: a stack and a memo of packed cells, and one case an opcode. Source:
// Lib/pickletools.py of CPython.
#include "formats/container/dcp_pickle.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace ckptverify {
namespace {

constexpr unsigned kKindBits = 4;
constexpr unsigned kTextSizeBits = 24;  // a name of 16 MiB is none
constexpr std::uint64_t kTextSizeMax = (1ULL << kTextSizeBits) - 1;
constexpr std::uint64_t kTextOffsetMax = 1ULL << (64 - kKindBits - kTextSizeBits);
constexpr unsigned kProtocolMax = 5;
// Cells are counted in 32 bits; 32 GiB of them would be the metadata of a hundred million chunks.
constexpr std::uint64_t kCellsMax = std::numeric_limits<std::uint32_t>::max() / 2;
// No class of the metadata has as many attributes; a shared dictionary must not be searched for
// each of a million objects.
constexpr std::size_t kAttributesMax = 64;
constexpr std::int64_t kIntegerMax = (1LL << 58) - 1;

std::uint64_t packed(Cell cell) {
  return cell.payload << kKindBits | static_cast<std::uint64_t>(cell.kind);
}

Cell unpacked(std::uint64_t bits) {
  return {static_cast<CellKind>(bits & ((1U << kKindBits) - 1)), bits >> kKindBits};
}

bool has_object(Cell cell) {
  return cell.kind >= CellKind::kTuple;
}

Cell integer_cell(std::int64_t value) {
  if (value > kIntegerMax || value < -kIntegerMax) return {CellKind::kOther};
  const auto zigzag = static_cast<std::uint64_t>(value < 0 ? -2 * value - 1 : 2 * value);
  return {CellKind::kInteger, zigzag};
}

}  // namespace

class CellMachine {
 public:
  explicit CellMachine(Bytes bytes) : reader_(bytes) { pickle_.bytes_ = bytes; }

  Result<CellPickle> run();

 private:
  Error fault(const std::string& message, CauseKind cause = CauseKind::kBitrot) const {
    return {.message = "pickle " + message, .offset = at_, .cause = Cause{cause, {}}};
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(Cell cell) { stack_.push_back(packed(cell)); }
  Result<Cell> pop();
  Result<Cell> top() const;
  Result<std::size_t> mark();
  Result<void> make(CellKind kind, std::size_t begin);
  Result<void> append(Cell target, std::size_t begin);
  Result<void> text(std::uint64_t size);
  Result<void> skip(std::uint64_t size);
  Result<void> reduce(bool object);
  Result<void> build();
  Result<void> add(std::uint8_t opcode);
  Result<void> put(std::uint64_t index);
  Result<void> get(std::uint64_t index);
  Result<void> global();
  Result<bool> step_scalar(std::uint8_t opcode);
  Result<bool> step_memo(std::uint8_t opcode);
  Result<bool> step_object(std::uint8_t opcode);
  Result<bool> step_frame(std::uint8_t opcode);

  ByteReader reader_;
  CellPickle pickle_;
  std::vector<std::uint64_t> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::uint64_t> memo_;
  std::uint64_t at_ = 0;
};

Result<Cell> CellMachine::pop() {
  if (stack_.size() <= floor()) return fault("takes from an empty stack");
  const Cell cell = unpacked(stack_.back());
  stack_.pop_back();
  return cell;
}

Result<Cell> CellMachine::top() const {
  if (stack_.size() <= floor()) return fault("looks at an empty stack");
  return unpacked(stack_.back());
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
  CKPTVERIFY_TRY_VOID(reader_.take(size));
  if (size > kTextSizeMax || offset >= kTextOffsetMax) return fault("has too long a text");
  push({CellKind::kText, offset << kTextSizeBits | size});
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
        stack_.back() = packed(inner);
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
  const Cell target = unpacked(stack_[begin - 1]);
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
  memo_[static_cast<std::size_t>(index)] = packed(cell);
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
    if (line.size() > kTextSizeMax || offset >= kTextOffsetMax) return fault("has too long a name");
    push({CellKind::kText, offset << kTextSizeBits | line.size()});
  }
  return make(CellKind::kGlobal, stack_.size() - 2);
}

Result<bool> CellMachine::step_scalar(std::uint8_t opcode) {
  std::uint64_t size = 0;
  switch (opcode) {
    case 'N':
      push({CellKind::kNone});
      return true;
    case 0x88:
    case 0x89:
      push({CellKind::kBool, opcode == 0x88 ? 1U : 0U});
      return true;
    case 'J': {
      CKPTVERIFY_TRY(const auto value, reader_.i32());
      push(integer_cell(value));
      return true;
    }
    case 'K': {
      CKPTVERIFY_TRY(const auto value, reader_.u8());
      push(integer_cell(value));
      return true;
    }
    case 'M': {
      CKPTVERIFY_TRY(const auto value, reader_.u16());
      push(integer_cell(value));
      return true;
    }
    case 0x8a: {  // LONG1
      CKPTVERIFY_TRY(const auto count, reader_.u8());
      CKPTVERIFY_TRY(const Bytes bytes, reader_.take(count));
      std::uint64_t value = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0}
                                ? ~std::uint64_t{0}
                                : 0;
      for (std::size_t i = bytes.size(); i-- > 0;)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
      push(count <= 8 ? integer_cell(static_cast<std::int64_t>(value)) : Cell{CellKind::kOther});
      return true;
    }
    case 'G':
      CKPTVERIFY_TRY_VOID(skip(8));
      return true;
    case 0x8c:
    case 'C':
    case 'U': {
      CKPTVERIFY_TRY(size, reader_.u8());
      break;
    }
    case 'X':
    case 'B':
    case 'T':
    case 0x8b: {
      CKPTVERIFY_TRY(size, reader_.u32());
      break;
    }
    case 0x8d:
    case 0x8e:
    case 0x96: {
      CKPTVERIFY_TRY(size, reader_.u64());
      break;
    }
    default:
      return false;
  }
  const bool is_text = opcode == 0x8c || opcode == 'X' || opcode == 0x8d;
  CKPTVERIFY_TRY_VOID(is_text ? text(size) : skip(size));
  return true;
}

Result<bool> CellMachine::step_memo(std::uint8_t opcode) {
  std::uint64_t index = 0;
  switch (opcode) {
    case 0x94:
      CKPTVERIFY_TRY_VOID(put(memo_.size()));
      return true;
    case 'q':
    case 'h': {
      CKPTVERIFY_TRY(index, reader_.u8());
      break;
    }
    case 'r':
    case 'j': {
      CKPTVERIFY_TRY(index, reader_.u32());
      break;
    }
    default:
      return false;
  }
  CKPTVERIFY_TRY_VOID(opcode == 'q' || opcode == 'r' ? put(index) : get(index));
  return true;
}

Result<bool> CellMachine::step_object(std::uint8_t opcode) {
  switch (opcode) {
    case ']':
      CKPTVERIFY_TRY_VOID(make(CellKind::kList, stack_.size()));
      return true;
    case ')':
      CKPTVERIFY_TRY_VOID(make(CellKind::kTuple, stack_.size()));
      return true;
    case '}':
      CKPTVERIFY_TRY_VOID(make(CellKind::kDict, stack_.size()));
      return true;
    case 0x8f:  // EMPTY_SET
      CKPTVERIFY_TRY_VOID(make(CellKind::kList, stack_.size()));
      return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      const std::size_t count = opcode - 0x84U;
      if (stack_.size() - floor() < count) return fault("takes from an empty stack");
      CKPTVERIFY_TRY_VOID(make(CellKind::kTuple, stack_.size() - count));
      return true;
    }
    case 't':
    case 0x91: {  // TUPLE, FROZENSET
      CKPTVERIFY_TRY(const std::size_t begin, mark());
      CKPTVERIFY_TRY_VOID(make(CellKind::kTuple, begin));
      return true;
    }
    case 'a':
    case 'e':
    case 's':
    case 'u':
    case 0x90:
      CKPTVERIFY_TRY_VOID(add(opcode));
      return true;
    case 'c':
      CKPTVERIFY_TRY_VOID(global());
      return true;
    case 0x93:
      if (stack_.size() - floor() < 2) return fault("takes from an empty stack");
      CKPTVERIFY_TRY_VOID(make(CellKind::kGlobal, stack_.size() - 2));
      return true;
    case 'R':
    case 0x81:
      CKPTVERIFY_TRY_VOID(reduce(opcode != 'R'));
      return true;
    case 0x92:  // NEWOBJ_EX: the keyword arguments are dropped with the others
      CKPTVERIFY_TRY_VOID(pop());
      CKPTVERIFY_TRY_VOID(reduce(true));
      return true;
    case 'b':
      CKPTVERIFY_TRY_VOID(build());
      return true;
    default:
      return false;
  }
}

Result<bool> CellMachine::step_frame(std::uint8_t opcode) {
  switch (opcode) {
    case 0x80: {
      CKPTVERIFY_TRY(const auto protocol, reader_.u8());
      if (protocol > kProtocolMax) return fault("has an unknown protocol");
      return true;
    }
    case 0x95: {
      CKPTVERIFY_TRY(const auto size, reader_.u64());
      if (size > reader_.remaining())
        return fault("is cut off inside a frame; found " + std::to_string(reader_.remaining()) +
                         " bytes of it, expected " + std::to_string(size),
                     CauseKind::kTrunc);
      return true;
    }
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':
      CKPTVERIFY_TRY_VOID(pop());
      return true;
    case '1': {
      CKPTVERIFY_TRY(const std::size_t begin, mark());
      stack_.resize(begin);
      return true;
    }
    case '2': {
      CKPTVERIFY_TRY(const Cell cell, top());
      push(cell);
      return true;
    }
    default:
      return false;
  }
}

Result<CellPickle> CellMachine::run() {
  // Reallocating while doubling would hold the largest array twice.
  pickle_.cells_.reserve(pickle_.bytes_.size() / 4);
  for (;;) {
    at_ = reader_.offset();
    const auto opcode = reader_.u8();
    if (!opcode) {
      return fault("ends before its STOP; found " + std::to_string(reader_.position()) +
                       " bytes, expected more",
                   CauseKind::kTrunc);
    }
    if (*opcode == '.') break;
    bool known = false;
    for (const auto family : {&CellMachine::step_memo, &CellMachine::step_scalar,
                              &CellMachine::step_object, &CellMachine::step_frame}) {
      auto stepped = (this->*family)(*opcode);
      if (!stepped) {
        Error error = std::move(stepped).error();
        if (!error.cause) error.cause = Cause{CauseKind::kTrunc, {}};  // an operand past the end
        if (!error.offset) error.offset = at_;
        return error;
      }
      known = *stepped;
      if (known) break;
    }
    if (!known)
      return fault("has an opcode that protocols 2 to 5 do not write; found " +
                   std::to_string(*opcode));
  }
  CKPTVERIFY_TRY(pickle_.root_, pop());
  if (!stack_.empty() || !marks_.empty())
    return fault("leaves objects on its stack; found " + std::to_string(stack_.size()) +
                 ", expected 0");
  pickle_.end_ = reader_.offset();
  return std::move(pickle_);
}

Result<CellPickle> CellPickle::read(Bytes bytes) {
  return CellMachine(bytes).run();
}

std::size_t CellPickle::count(Cell cell) const {
  return has_object(cell) ? objects_[static_cast<std::size_t>(cell.payload)].count : 0;
}

Cell CellPickle::item(Cell cell, std::size_t index) const {
  CKPTVERIFY_ASSERT(index < count(cell));
  return unpacked(cells_[objects_[static_cast<std::size_t>(cell.payload)].first + index]);
}

std::string_view CellPickle::text(Cell cell) const {
  if (cell.kind != CellKind::kText) return {};
  return as_text(bytes_).substr(static_cast<std::size_t>(cell.payload >> kTextSizeBits),
                                static_cast<std::size_t>(cell.payload & kTextSizeMax));
}

std::int64_t CellPickle::integer(Cell cell) const {
  const auto half = static_cast<std::int64_t>(cell.payload >> 1);
  return (cell.payload & 1) != 0 ? -half - 1 : half;
}

Cell CellPickle::find(Cell cell, std::string_view key) const {
  Cell found{CellKind::kNone};
  if (cell.kind == CellKind::kDict) {
    for (std::size_t i = 0; i + 1 < std::min(count(cell), 2 * kAttributesMax); i += 2)
      if (text(item(cell, i)) == key) found = item(cell, i + 1);
  }
  if (cell.kind != CellKind::kObject) return found;
  for (std::size_t i = 1; i < std::min(count(cell), kAttributesMax); ++i) {
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
