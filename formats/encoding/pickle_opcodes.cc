// The opcodes of protocol 0's text, of objects and names, and of the memo, stack and framing.
#include <algorithm>
#include <charconv>
#include <utility>

#include "formats/encoding/pickle_machine.h"

namespace ckptverify {

Result<PickleNode*> PickleMachine::global(std::string_view module, std::string_view name) {
  if (std::max(module.size(), name.size()) > kPickleNameMax) {
    return fault("pickle names a class by too long a text; found " +
                 std::to_string(std::max(module.size(), name.size())) +
                 " bytes, expected at most " + std::to_string(kPickleNameMax));
  }
  return &tree_.add_global(module, name, at_);
}

/// Protocol 0: operands are lines of text.
Result<void> PickleMachine::step_text(std::uint8_t opcode) {
  CKPTVERIFY_TRY(const auto line, reader_.line());
  switch (opcode) {
    case 'F': {
      CKPTVERIFY_TRY(const auto value, float_of_text(line));
      push(tree_.add_float(value, at_));
      return {};
    }
    case 'I': {
      if (line == "00" || line == "01") {
        push(tree_.add_bool(line == "01", at_));
        return {};
      }
      [[fallthrough]];
    }
    case 'L': {
      const bool suffixed = opcode == 'L' && line.ends_with('L');
      CKPTVERIFY_TRY(auto value, integer_of_text(line.substr(0, line.size() - suffixed)));
      push_value(std::move(value));
      return {};
    }
    case 'S': {
      CKPTVERIFY_TRY(const auto text, unquoted(line));
      const bool plain = is_utf8(text, Surrogates::kAllowed);
      push_kept(plain ? PickleKind::kString : PickleKind::kBytes, text);
      return {};
    }
    case 'V': {
      CKPTVERIFY_TRY(const auto text, unescaped_unicode(line));
      push_kept(PickleKind::kString, text);
      return {};
    }
    case 'P': {
      PickleNode& id = tree_.add_text(PickleKind::kString, as_bytes(line), at_);
      push(tree_.add_persistent(id, at_));
      return {};
    }
    case 'g':
    case 'p': {
      std::uint64_t index = 0;
      const auto parsed = std::from_chars(line.data(), line.data() + line.size(), index);
      if (parsed.ec != std::errc() || parsed.ptr != line.data() + line.size()) {
        return fault("pickle memo index is no number");
      }
      CKPTVERIFY_TRY_VOID(opcode == 'g' ? recall(index) : remember(index));
      return {};
    }
    default:
      return step_names(opcode, line);
  }
}

/// GLOBAL and INST: a second line is the name.
Result<void> PickleMachine::step_names(std::uint8_t opcode, std::string_view module) {
  CKPTVERIFY_TRY(const auto name, reader_.line());
  CKPTVERIFY_TRY(PickleNode * type, global(module, name));
  if (opcode == 'c') {
    push(*type);
    return {};
  }
  CKPTVERIFY_TRY(const auto arguments, last_to_mark());  // INST
  PickleNode* parts[] = {type, &tree_.add_sequence(PickleKind::kTuple, arguments, at_)};
  drop_to_mark(arguments);
  push(tree_.add_object(PickleKind::kObject, parts, at_));
  return {};
}

Result<void> PickleMachine::step_object(std::uint8_t opcode) {
  switch (opcode) {
    case 'R':
    case 0x81:    // NEWOBJ
    case 0x92: {  // NEWOBJ_EX
      CKPTVERIFY_TRY(const auto items, last(opcode == 0x92 ? 3 : 2));
      push_object(opcode == 'R' ? PickleKind::kCall : PickleKind::kObject, items);
      return {};
    }
    case 'o': {
      CKPTVERIFY_TRY(const auto items, last_to_mark());
      if (items.empty()) return fault("pickle makes an object without a class");
      PickleNode* parts[] = {items[0],
                             &tree_.add_sequence(PickleKind::kTuple, items.subspan(1), at_)};
      drop_to_mark(items);
      push(tree_.add_object(PickleKind::kObject, parts, at_));
      return {};
    }
    case 'b': {
      CKPTVERIFY_TRY(PickleNode * state, pop());
      CKPTVERIFY_TRY(PickleNode * target, top());
      if (target->kind != PickleKind::kCall && target->kind != PickleKind::kObject) {
        return fault("pickle sets the state of what has none");
      }
      tree_.add_state(*target, *state);
      return {};
    }
    case 'Q': {
      CKPTVERIFY_TRY(PickleNode * id, pop());
      push(tree_.add_persistent(*id, at_));
      return {};
    }
    case 0x93: {  // STACK_GLOBAL
      CKPTVERIFY_TRY(const auto names, last(2));
      const auto module = names[0]->string();
      const auto name = names[1]->string();
      if (!module || !name) {
        return fault("pickle names a class by what is no string", CauseKind::kPickleDep);
      }
      CKPTVERIFY_TRY(PickleNode * type, global(*module, *name));
      drop(names);
      push(*type);
      return {};
    }
    case 0x82:
    case 0x83:
    case 0x84: {  // EXT1, EXT2, EXT4: a number that only the writer's registry resolves
      CKPTVERIFY_TRY(const auto code, operand(1U << (opcode - 0x82U)));
      const auto name = tree_.keep("extension " + value_text(integer_of_bytes(code)));
      push(tree_.add_global("copyreg", name, at_));
      return {};
    }
    case 0x97:
      push(tree_.add(PickleKind::kBuffer, at_));
      return {};
    case 0x98: {
      CKPTVERIFY_TRY([[maybe_unused]] const auto* node, top());
      return {};
    }
    default:
      return unknown(opcode);
  }
}

Result<void> PickleMachine::step_memo(std::uint8_t opcode) {
  switch (opcode) {
    case 'q':
    case 'h': {
      CKPTVERIFY_TRY(const auto index, reader_.u8());
      CKPTVERIFY_TRY_VOID(opcode == 'q' ? remember(index) : recall(index));
      return {};
    }
    case 'r':
    case 'j': {
      CKPTVERIFY_TRY(const auto index, reader_.u32());
      CKPTVERIFY_TRY_VOID(opcode == 'r' ? remember(index) : recall(index));
      return {};
    }
    case 0x94:
      CKPTVERIFY_TRY_VOID(remember(memo_count_));
      return {};
    default:
      return unknown(opcode);
  }
}

Result<void> PickleMachine::step_stack(std::uint8_t opcode) {
  switch (opcode) {
    case '(': {
      if (marks_.size() >= kPickleStackMax) return fault("pickle's stack is too high");
      marks_.push_back(stack_.size());
      return {};
    }
    case '0': {
      // On a mark this takes the mark away: how recursive tuples are written.
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
        return {};
      }
      CKPTVERIFY_TRY([[maybe_unused]] const auto* node, pop());
      return {};
    }
    case '1': {
      CKPTVERIFY_TRY(const auto nodes, last_to_mark());
      drop_to_mark(nodes);
      return {};
    }
    case '2': {
      CKPTVERIFY_TRY(PickleNode * node, top());
      push(*node);
      return {};
    }
    case 0x80: {
      CKPTVERIFY_TRY(const auto protocol, reader_.u8());
      if (protocol > kPickleProtocolMax || reader_.position() != 2) {
        return fault("pickle protocol; found " + std::to_string(protocol) +
                     ", expected at most 5, at the beginning");
      }
      return {};
    }
    case 0x95: {
      CKPTVERIFY_TRY(const auto size, reader_.u64());
      if (size > reader_.remaining()) {
        return fault("pickle frame is cut; found " + std::to_string(reader_.remaining()) +
                         " bytes, expected " + std::to_string(size),
                     CauseKind::kTrunc);
      }
      return {};
    }
    default:
      return unknown(opcode);
  }
}

}  // namespace ckptverify
