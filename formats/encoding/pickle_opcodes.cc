// The opcodes of protocol 0's text, of objects and names, and of the memo, stack and framing.
#include <charconv>
#include <utility>

#include "formats/encoding/pickle_machine.h"

namespace ckptverify {

/// Protocol 0: operands are lines of text.
Result<bool> PickleMachine::step_text(std::uint8_t opcode) {
  constexpr std::string_view kOpcodes = "FILSVPgpci";
  if (kOpcodes.find(static_cast<char>(opcode)) == std::string_view::npos) return false;
  CKPTVERIFY_TRY(const auto line, reader_.line());
  switch (opcode) {
    case 'F': {
      CKPTVERIFY_TRY(const auto value, float_of_text(line));
      CKPTVERIFY_TRY_VOID(push_node(tree_.add_float(value, at_)));
      return true;
    }
    case 'I': {
      if (line == "00" || line == "01") {
        CKPTVERIFY_TRY_VOID(push_node(tree_.add_bool(line == "01", at_)));
        return true;
      }
      [[fallthrough]];
    }
    case 'L': {
      const bool suffixed = opcode == 'L' && line.ends_with('L');
      CKPTVERIFY_TRY(auto value, integer_of_text(line.substr(0, line.size() - suffixed)));
      CKPTVERIFY_TRY_VOID(push_value(std::move(value)));
      return true;
    }
    case 'S': {
      CKPTVERIFY_TRY(const auto text, unquoted(line));
      const bool plain = is_utf8(text, Surrogates::kAllowed);
      CKPTVERIFY_TRY_VOID(push_kept(plain ? PickleKind::kString : PickleKind::kBytes, text));
      return true;
    }
    case 'V': {
      CKPTVERIFY_TRY(const auto text, unescaped_unicode(line));
      CKPTVERIFY_TRY_VOID(push_kept(PickleKind::kString, text));
      return true;
    }
    case 'P': {
      PickleNode& id = tree_.add_text(PickleKind::kString, as_bytes(line), at_);
      CKPTVERIFY_TRY_VOID(push_node(tree_.add_persistent(id, at_)));
      return true;
    }
    case 'g':
    case 'p': {
      std::uint64_t index = 0;
      const auto parsed = std::from_chars(line.data(), line.data() + line.size(), index);
      if (parsed.ec != std::errc() || parsed.ptr != line.data() + line.size()) {
        return fault("pickle memo index is no number");
      }
      CKPTVERIFY_TRY_VOID(opcode == 'g' ? recall(index) : remember(index));
      return true;
    }
    default:
      break;
  }
  CKPTVERIFY_TRY(const auto name, reader_.line());
  if (opcode == 'c') {
    CKPTVERIFY_TRY_VOID(push_node(tree_.add_global(line, name, at_)));
    return true;
  }
  CKPTVERIFY_TRY(const auto arguments, last_to_mark());  // INST
  PickleNode* parts[] = {&tree_.add_global(line, name, at_),
                         &tree_.add_sequence(PickleKind::kTuple, arguments, at_)};
  drop_to_mark(arguments);
  CKPTVERIFY_TRY_VOID(push_node(tree_.add_object(PickleKind::kObject, parts, at_)));
  return true;
}

Result<bool> PickleMachine::step_object(std::uint8_t opcode) {
  switch (opcode) {
    case 'R':
    case 0x81:    // NEWOBJ
    case 0x92: {  // NEWOBJ_EX
      CKPTVERIFY_TRY(const auto items, last(opcode == 0x92 ? 3 : 2));
      CKPTVERIFY_TRY_VOID(
          push_object(opcode == 'R' ? PickleKind::kCall : PickleKind::kObject, items));
      return true;
    }
    case 'o': {
      CKPTVERIFY_TRY(const auto items, last_to_mark());
      if (items.empty()) return fault("pickle makes an object without a class");
      PickleNode* parts[] = {items[0],
                             &tree_.add_sequence(PickleKind::kTuple, items.subspan(1), at_)};
      drop_to_mark(items);
      CKPTVERIFY_TRY_VOID(push_node(tree_.add_object(PickleKind::kObject, parts, at_)));
      return true;
    }
    case 'b': {
      CKPTVERIFY_TRY(PickleNode * state, pop());
      CKPTVERIFY_TRY(PickleNode * target, top());
      if (target->kind != PickleKind::kCall && target->kind != PickleKind::kObject) {
        return fault("pickle sets the state of what has none");
      }
      tree_.add_state(*target, *state);
      return true;
    }
    case 'Q': {
      CKPTVERIFY_TRY(PickleNode * id, pop());
      CKPTVERIFY_TRY_VOID(push_node(tree_.add_persistent(*id, at_)));
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      CKPTVERIFY_TRY(const auto names, last(2));
      const auto module = names[0]->string();
      const auto name = names[1]->string();
      if (!module || !name) {
        return fault("pickle names a class by what is no string", CauseKind::kPickleDep);
      }
      drop(names);
      CKPTVERIFY_TRY_VOID(push_node(tree_.add_global(*module, *name, at_)));
      return true;
    }
    case 0x82:
    case 0x83:
    case 0x84: {  // EXT1, EXT2, EXT4: a number that only the writer's registry resolves
      CKPTVERIFY_TRY(const auto code, operand(1U << (opcode - 0x82U)));
      const auto name = tree_.keep("extension " + value_text(integer_of_bytes(code)));
      CKPTVERIFY_TRY_VOID(push_node(tree_.add_global("copyreg", name, at_)));
      return true;
    }
    case 0x97:
      CKPTVERIFY_TRY_VOID(push_node(tree_.add(PickleKind::kBuffer, at_)));
      return true;
    case 0x98: {
      CKPTVERIFY_TRY([[maybe_unused]] const auto* node, top());
      return true;
    }
    default:
      return false;
  }
}

Result<bool> PickleMachine::step_memo(std::uint8_t opcode) {
  switch (opcode) {
    case 'q':
    case 'h': {
      CKPTVERIFY_TRY(const auto index, reader_.u8());
      CKPTVERIFY_TRY_VOID(opcode == 'q' ? remember(index) : recall(index));
      return true;
    }
    case 'r':
    case 'j': {
      CKPTVERIFY_TRY(const auto index, reader_.u32());
      CKPTVERIFY_TRY_VOID(opcode == 'r' ? remember(index) : recall(index));
      return true;
    }
    case 0x94:
      CKPTVERIFY_TRY_VOID(remember(memo_count_));
      return true;
    case '(': {
      if (marks_.size() >= kPickleStackMax) return fault("pickle's stack is too high");
      marks_.push_back(stack_.size());
      return true;
    }
    case '0': {
      // On a mark this takes the mark away: how recursive tuples are written.
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
        return true;
      }
      CKPTVERIFY_TRY([[maybe_unused]] const auto* node, pop());
      return true;
    }
    case '1': {
      CKPTVERIFY_TRY(const auto nodes, last_to_mark());
      drop_to_mark(nodes);
      return true;
    }
    case '2': {
      CKPTVERIFY_TRY(PickleNode * node, top());
      CKPTVERIFY_TRY_VOID(push(node));
      return true;
    }
    case 0x80: {
      CKPTVERIFY_TRY(const auto protocol, reader_.u8());
      if (protocol > kPickleProtocolMax || reader_.position() != 2) {
        return fault("pickle protocol; found " + std::to_string(protocol) +
                     ", expected at most 5, at the beginning");
      }
      return true;
    }
    case 0x95: {
      CKPTVERIFY_TRY(const auto size, reader_.u64());
      if (size > reader_.remaining()) {
        return fault("pickle frame is cut; found " + std::to_string(reader_.remaining()) +
                         " bytes, expected " + std::to_string(size),
                     CauseKind::kTrunc);
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace ckptverify
