// One case an opcode. Source: Lib/pickletools.py of CPython.
#include <utility>

#include "formats/container/dcp_pickle_machine.h"

namespace ckptverify {

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
      if (protocol > kCellProtocolMax) return fault("has an unknown protocol");
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

}  // namespace ckptverify
