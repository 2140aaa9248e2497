// The pickle machine: a stack, a memo, and one case an opcode. Source: Lib/pickletools.py of
// CPython, which documents every opcode; BINFLOAT alone is big-endian.
#include "formats/encoding/pickle.h"

#include <array>
#include <iterator>
#include <utility>

#include "formats/encoding/pickle_machine.h"

namespace ckptverify {

Result<void> PickleMachine::remember(std::uint64_t index) {
  CKPTVERIFY_TRY(PickleNode * node, top());
  if (memo_count_ >= kPickleMemoMax) return fault("pickle's memo is too large");
  if (index == memo_.size()) {
    memo_.push_back(nullptr);
  } else if (index > memo_.size() && index - memo_.size() < kPickleMemoGapMax) {
    memo_.resize(index + 1, nullptr);
  }
  PickleNode*& place = index < memo_.size() ? memo_[index] : far_memo_[index];
  if (place == nullptr) ++memo_count_;
  place = node;
  return {};
}

Result<void> PickleMachine::recall(std::uint64_t index) {
  PickleNode* node = index < memo_.size() ? memo_[index] : nullptr;
  if (const auto far = far_memo_.find(index); node == nullptr && far != far_memo_.end()) {
    node = far->second;
  }
  if (node == nullptr) {
    return fault("pickle recalls what it did not remember; found memo index " +
                 std::to_string(index) + ", expected one of " + std::to_string(memo_count_));
  }
  push(*node);
  return {};
}

Result<void> PickleMachine::set_items(PickleNode& target, PickleItems flat) {
  if (flat.size() % 2 != 0) return fault("pickle has a key without a value");
  if (target.kind != PickleKind::kDict && target.kind != PickleKind::kCall &&
      target.kind != PickleKind::kObject) {
    return fault("pickle sets items of what is no mapping");
  }
  if (target.pairs().size() + flat.size() > kPickleItemsMax) {
    return fault("pickle's dictionary is too large");
  }
  tree_.set_items(target, flat);
  return {};
}

Result<void> PickleMachine::append(PickleNode& target, PickleItems items) {
  if (target.kind != PickleKind::kCall && target.kind != PickleKind::kObject &&
      target.kind != PickleKind::kList && target.kind != PickleKind::kSet) {
    return fault("pickle appends to what is no list");
  }
  if (target.items().size() + target.added().size() + items.size() > kPickleItemsMax) {
    return fault("pickle's list is too large");
  }
  tree_.append(target, items);
  return {};
}

Result<void> PickleMachine::step_scalar(std::uint8_t opcode) {
  switch (opcode) {
    case 'N':
      push(tree_.add(PickleKind::kNone, at_));
      return {};
    case 0x88:
      push(tree_.add_bool(true, at_));
      return {};
    case 0x89:
      push(tree_.add_bool(false, at_));
      return {};
    case 'J': {
      CKPTVERIFY_TRY(const auto value, reader_.i32());
      push_integer(value);
      return {};
    }
    case 'K': {
      CKPTVERIFY_TRY(const auto value, reader_.u8());
      push_integer(value);
      return {};
    }
    case 'M': {
      CKPTVERIFY_TRY(const auto value, reader_.u16());
      push_integer(value);
      return {};
    }
    case 0x8a: {  // LONG1
      CKPTVERIFY_TRY(const auto size, reader_.u8());
      CKPTVERIFY_TRY(const auto bytes, operand(size));
      push_value(integer_of_bytes(bytes));
      return {};
    }
    case 0x8b: {  // LONG4
      CKPTVERIFY_TRY(const auto size, reader_.u32());
      CKPTVERIFY_TRY(const auto bytes, operand(size));
      push_value(integer_of_bytes(bytes));
      return {};
    }
    case 'G': {
      CKPTVERIFY_TRY(const auto value, reader_.f64_big_endian());
      push(tree_.add_float(value, at_));
      return {};
    }
    default:
      return unknown(opcode);
  }
}

Result<void> PickleMachine::step_bytes(std::uint8_t opcode) {
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
      return unknown(opcode);
  }
  if (opcode == 'X' || opcode == 0x8c || opcode == 0x8d) {
    CKPTVERIFY_TRY_VOID(push_text(size));
    return {};
  }
  CKPTVERIFY_TRY(const auto bytes, operand(size));
  // Python 2's strings are text where they can be.
  const bool text =
      (opcode == 'U' || opcode == 'T') && is_utf8(as_text(bytes), Surrogates::kRefused);
  const PickleKind kind = text             ? PickleKind::kString
                          : opcode == 0x96 ? PickleKind::kByteArray
                                           : PickleKind::kBytes;
  push(tree_.add_text(kind, bytes, at_));
  return {};
}

Result<void> PickleMachine::step_container(std::uint8_t opcode) {
  switch (opcode) {
    case ']':
      push(tree_.add_sequence(PickleKind::kList, {}, at_));
      return {};
    case ')':
      push(tree_.add_sequence(PickleKind::kTuple, {}, at_));
      return {};
    case '}':
      push(tree_.add_dict({}, at_));
      return {};
    case 0x8f:
      push(tree_.add_sequence(PickleKind::kSet, {}, at_));
      return {};
    case 0x85:
    case 0x86:
    case 0x87: {
      CKPTVERIFY_TRY(const auto items, last(opcode - 0x84U));
      push_sequence(PickleKind::kTuple, items);
      return {};
    }
    default:
      return unknown(opcode);
  }
}

/// What takes everything down to a mark.
Result<void> PickleMachine::step_filled(std::uint8_t opcode) {
  switch (opcode) {
    case 't':
    case 'l':
    case 0x91: {
      CKPTVERIFY_TRY(const auto items, last_to_mark());
      marks_.pop_back();
      const PickleKind kind = opcode == 't'   ? PickleKind::kTuple
                              : opcode == 'l' ? PickleKind::kList
                                              : PickleKind::kFrozenSet;
      push_sequence(kind, items);
      return {};
    }
    case 'd': {
      CKPTVERIFY_TRY(const auto flat, last_to_mark());
      PickleNode& dict = tree_.add_dict({}, at_);
      CKPTVERIFY_TRY_VOID(set_items(dict, flat));
      drop_to_mark(flat);
      push(dict);
      return {};
    }
    case 'a':
    case 'e':
    case 's':
    case 'u':
    case 0x90: {
      const bool marked = opcode != 'a' && opcode != 's';
      CKPTVERIFY_TRY(const auto items, marked ? last_to_mark() : last(opcode == 'a' ? 1 : 2));
      if (marked) marks_.pop_back();
      const std::size_t below = stack_.size() - items.size();
      if (below <= floor()) return fault("pickle adds to an empty stack");
      PickleNode& target = *stack_[below - 1];
      const bool pairs = opcode == 's' || opcode == 'u';
      CKPTVERIFY_TRY_VOID(pairs ? set_items(target, items) : append(target, items));
      drop(items);
      return {};
    }
    default:
      return unknown(opcode);
  }
}

Result<void> PickleMachine::step(std::uint8_t opcode) {
  struct Family {
    std::string_view opcodes;
    Result<void> (PickleMachine::*step)(std::uint8_t);
  };
  static constexpr Family kFamilies[] = {
      {"", &PickleMachine::step_text},  // of no family: told as unknown below
      {"qhrj\x94", &PickleMachine::step_memo},
      {"(012\x80\x95", &PickleMachine::step_stack},
      {"NJKMG\x88\x89\x8a\x8b", &PickleMachine::step_scalar},
      {"UCTBX\x8c\x8d\x8e\x96", &PickleMachine::step_bytes},
      {"])}\x8f\x85\x86\x87", &PickleMachine::step_container},
      {"tldaesu\x90\x91", &PickleMachine::step_filled},
      {"RobQ\x81\x82\x83\x84\x92\x93\x97\x98", &PickleMachine::step_object},
      {"FILSVPgpci", &PickleMachine::step_text},
  };
  static constexpr auto kFamilyOf = [] {
    std::array<std::uint8_t, 256> family{};
    for (std::uint8_t i = 0; i < std::size(kFamilies); ++i) {
      for (const char each : kFamilies[i].opcodes) family[static_cast<std::uint8_t>(each)] = i;
    }
    return family;
  }();
  const std::uint8_t family = kFamilyOf[opcode];
  if (family == 0) return unknown(opcode);
  return (this->*kFamilies[family].step)(opcode);
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
    CKPTVERIFY_TRY_VOID(room());
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

Result<PickleTree> read_pickle(std::vector<std::byte> bytes, std::uint64_t base) {
  // A vector's bytes stay where they are when it is moved.
  CKPTVERIFY_TRY(auto tree, read_pickle(Bytes(bytes), base));
  tree.keep(std::move(bytes));
  return tree;
}

}  // namespace ckptverify
