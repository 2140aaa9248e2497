// The pickle machine: a stack, a memo, and one case an opcode. Source: Lib/pickletools.py of
// CPython, which documents every opcode; BINFLOAT alone is big-endian.
#include "formats/encoding/pickle.h"

#include <utility>

#include "formats/encoding/pickle_machine.h"

namespace ckptverify {

Result<void> PickleMachine::remember(std::uint64_t index) {
  CKPTVERIFY_TRY(PickleNode * node, top());
  if (memo_.size() >= kPickleMemoMax) return fault("pickle's memo is too large");
  memo_[index] = node;
  return {};
}

Result<void> PickleMachine::recall(std::uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) {
    return fault("pickle recalls what it did not remember; found memo index " +
                 std::to_string(index) + ", expected one of " + std::to_string(memo_.size()));
  }
  return push(found->second);
}

Result<void> PickleMachine::add_pairs(PickleNode& target, std::vector<PickleNode*> flat) {
  if (flat.size() % 2 != 0) return fault("pickle has a key without a value");
  if (target.kind != PickleKind::kDict && target.kind != PickleKind::kCall &&
      target.kind != PickleKind::kObject) {
    return fault("pickle sets items of what is no mapping");
  }
  for (std::size_t i = 0; i < flat.size(); i += 2) {
    target.pairs.emplace_back(flat[i], flat[i + 1]);
  }
  return {};
}

Result<void> PickleMachine::add_items(PickleNode& target, const std::vector<PickleNode*>& items) {
  const bool object = target.kind == PickleKind::kCall || target.kind == PickleKind::kObject;
  if (!object && target.kind != PickleKind::kList && target.kind != PickleKind::kSet) {
    return fault("pickle appends to what is no list");
  }
  auto& place = object ? target.added : target.items;
  place.insert(place.end(), items.begin(), items.end());
  return {};
}

Result<bool> PickleMachine::step_scalar(std::uint8_t opcode) {
  switch (opcode) {
    case 'N':
      CKPTVERIFY_TRY_VOID(push_value(Null{}));
      return true;
    case 0x88:
      CKPTVERIFY_TRY_VOID(push_value(true));
      return true;
    case 0x89:
      CKPTVERIFY_TRY_VOID(push_value(false));
      return true;
    case 'J': {
      CKPTVERIFY_TRY(const auto value, reader_.i32());
      CKPTVERIFY_TRY_VOID(push_value(std::int64_t{value}));
      return true;
    }
    case 'K': {
      CKPTVERIFY_TRY(const auto value, reader_.u8());
      CKPTVERIFY_TRY_VOID(push_value(std::int64_t{value}));
      return true;
    }
    case 'M': {
      CKPTVERIFY_TRY(const auto value, reader_.u16());
      CKPTVERIFY_TRY_VOID(push_value(std::int64_t{value}));
      return true;
    }
    case 0x8a: {  // LONG1
      CKPTVERIFY_TRY(const auto size, reader_.u8());
      CKPTVERIFY_TRY(const auto bytes, operand(size));
      CKPTVERIFY_TRY_VOID(push_integer(bytes));
      return true;
    }
    case 0x8b: {  // LONG4
      CKPTVERIFY_TRY(const auto size, reader_.u32());
      CKPTVERIFY_TRY(const auto bytes, operand(size));
      CKPTVERIFY_TRY_VOID(push_integer(bytes));
      return true;
    }
    case 'G': {
      CKPTVERIFY_TRY(const auto value, reader_.f64_big_endian());
      CKPTVERIFY_TRY_VOID(push_value(value));
      return true;
    }
    default:
      return false;
  }
}

Result<bool> PickleMachine::step_bytes(std::uint8_t opcode) {
  std::uint64_t size = 0;
  switch (opcode) {
    case 'U':
    case 'C':
    case 0x8c: {
      CKPTVERIFY_TRY(size, reader_.u8());
      break;
    }
    case 'T':
    case 'B':
    case 'X': {
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
  if (opcode == 'X' || opcode == 0x8c || opcode == 0x8d) {
    CKPTVERIFY_TRY_VOID(push_text(size));
    return true;
  }
  CKPTVERIFY_TRY(const auto bytes, operand(size));
  // Python 2's strings are text where they can be.
  if ((opcode == 'U' || opcode == 'T') && is_utf8(as_text(bytes), Surrogates::kRefused)) {
    CKPTVERIFY_TRY_VOID(push_value(std::string(as_text(bytes))));
    return true;
  }
  CKPTVERIFY_TRY_VOID(
      push_bytes(opcode == 0x96 ? PickleKind::kByteArray : PickleKind::kScalar, bytes));
  return true;
}

Result<bool> PickleMachine::step_container(std::uint8_t opcode) {
  switch (opcode) {
    case ']':
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kList}));
      return true;
    case ')':
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kTuple}));
      return true;
    case '}':
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kDict}));
      return true;
    case 0x8f:
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kSet}));
      return true;
    case 0x85:
    case 0x86:
    case 0x87:
      CKPTVERIFY_TRY_VOID(push_tuple(opcode - 0x84U));
      return true;
    case 't':
    case 'l':
    case 0x91: {
      CKPTVERIFY_TRY(auto items, pop_mark());
      const PickleKind kind = opcode == 't'   ? PickleKind::kTuple
                              : opcode == 'l' ? PickleKind::kList
                                              : PickleKind::kFrozenSet;
      CKPTVERIFY_TRY_VOID(push_new({.kind = kind, .items = std::move(items)}));
      return true;
    }
    case 'd': {
      CKPTVERIFY_TRY(auto flat, pop_mark());
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kDict}));
      CKPTVERIFY_TRY_VOID(add_pairs(*stack_.back(), std::move(flat)));
      return true;
    }
    case 'a':
    case 'e':
    case 0x90: {
      CKPTVERIFY_TRY(auto items, opcode == 'a' ? pop_many(1) : pop_mark());
      CKPTVERIFY_TRY(PickleNode * target, top());
      CKPTVERIFY_TRY_VOID(add_items(*target, items));
      return true;
    }
    case 's':
    case 'u': {
      CKPTVERIFY_TRY(auto flat, opcode == 's' ? pop_many(2) : pop_mark());
      CKPTVERIFY_TRY(PickleNode * target, top());
      CKPTVERIFY_TRY_VOID(add_pairs(*target, std::move(flat)));
      return true;
    }
    default:
      return false;
  }
}

Result<void> PickleMachine::step(std::uint8_t opcode) {
  for (const auto family :
       {&PickleMachine::step_memo, &PickleMachine::step_scalar, &PickleMachine::step_bytes,
        &PickleMachine::step_container, &PickleMachine::step_object, &PickleMachine::step_text}) {
    CKPTVERIFY_TRY(const bool done, (this->*family)(opcode));
    if (done) return {};
  }
  return fault("pickle has an unknown opcode; found " + std::to_string(opcode));
}

Result<PickleTree> PickleMachine::run() {
  for (;;) {
    at_ = reader_.offset();
    const auto opcode = reader_.u8();
    if (!opcode) {
      return fault("pickle ends before its STOP; found " + std::to_string(reader_.position()) +
                       " bytes, expected more",
                   CauseKind::kTrunc);
    }
    if (*opcode == '.') break;
    if (auto stepped = step(*opcode); !stepped) {
      Error error = std::move(stepped).error();
      if (!error.cause && error.kind == ErrorKind::kMalformed) {
        error.cause = Cause{CauseKind::kTrunc};  // the reader's: an operand that does not fit
      }
      if (!error.offset) error.offset = at_;
      return error;
    }
  }
  CKPTVERIFY_TRY(tree_.root_, pop());
  if (!stack_.empty() || !marks_.empty()) {
    return fault("pickle leaves objects on its stack; found " + std::to_string(stack_.size()) +
                 ", expected 0");
  }
  tree_.end_ = reader_.offset();
  return std::move(tree_);
}

Result<PickleTree> read_pickle(Bytes bytes, std::uint64_t base) {
  return PickleMachine(bytes, base).run();
}

}  // namespace ckptverify
