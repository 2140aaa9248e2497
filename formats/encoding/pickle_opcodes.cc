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
      CKPTVERIFY_TRY_VOID(push_value(value));
      return true;
    }
    case 'I': {
      if (line == "00" || line == "01") {
        CKPTVERIFY_TRY_VOID(push_value(line == "01"));
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
      CKPTVERIFY_TRY(auto text, unquoted(line));
      if (is_utf8(text, Surrogates::kAllowed)) {
        CKPTVERIFY_TRY_VOID(push_value(std::move(text)));
      } else {
        CKPTVERIFY_TRY_VOID(push_bytes(PickleKind::kScalar, as_bytes(text)));
      }
      return true;
    }
    case 'V': {
      CKPTVERIFY_TRY(auto text, unescaped_unicode(line));
      CKPTVERIFY_TRY_VOID(push_value(std::move(text)));
      return true;
    }
    case 'P': {
      PickleNode& id = tree_.add({.offset = at_, .value = std::string(line)});
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kPersistent, .items = {&id}}));
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
    CKPTVERIFY_TRY_VOID(push_global(line, name));
    return true;
  }
  CKPTVERIFY_TRY(auto arguments, pop_mark());
  PickleNode& type = tree_.add({.kind = PickleKind::kGlobal,
                                .offset = at_,
                                .module = std::string(line),
                                .name = std::string(name)});
  PickleNode& tuple =
      tree_.add({.kind = PickleKind::kTuple, .offset = at_, .items = std::move(arguments)});
  CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kObject, .items = {&type, &tuple}}));
  return true;
}

Result<bool> PickleMachine::step_object(std::uint8_t opcode) {
  switch (opcode) {
    case 'R':
    case 0x81:    // NEWOBJ
    case 0x92: {  // NEWOBJ_EX
      CKPTVERIFY_TRY(auto items, pop_many(opcode == 0x92 ? 3 : 2));
      CKPTVERIFY_TRY_VOID(push_new({.kind = opcode == 'R' ? PickleKind::kCall : PickleKind::kObject,
                                    .items = std::move(items)}));
      return true;
    }
    case 'o': {
      CKPTVERIFY_TRY(auto items, pop_mark());
      if (items.empty()) return fault("pickle makes an object without a class");
      PickleNode& arguments = tree_.add({.kind = PickleKind::kTuple, .offset = at_});
      arguments.items.assign(items.begin() + 1, items.end());
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kObject, .items = {items[0], &arguments}}));
      return true;
    }
    case 'b': {
      CKPTVERIFY_TRY(PickleNode * state, pop());
      CKPTVERIFY_TRY(PickleNode * target, top());
      target->states.push_back(state);
      return true;
    }
    case 'Q': {
      CKPTVERIFY_TRY(auto items, pop_many(1));
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kPersistent, .items = std::move(items)}));
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      CKPTVERIFY_TRY(const auto names, pop_many(2));
      const auto* module = names[0]->string();
      const auto* name = names[1]->string();
      if (module == nullptr || name == nullptr) {
        return fault("pickle names a class by what is no string", CauseKind::kPickleDep);
      }
      CKPTVERIFY_TRY_VOID(push_global(*module, *name));
      return true;
    }
    case 0x82:
    case 0x83:
    case 0x84: {  // EXT1, EXT2, EXT4: a number that only the writer's registry resolves
      CKPTVERIFY_TRY(const auto code, operand(1U << (opcode - 0x82U)));
      CKPTVERIFY_TRY_VOID(
          push_global("copyreg", "extension " + value_text(integer_of_bytes(code))));
      return true;
    }
    case 0x97:
      CKPTVERIFY_TRY_VOID(push_new({.kind = PickleKind::kBuffer}));
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
      CKPTVERIFY_TRY_VOID(remember(memo_.size()));
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
      CKPTVERIFY_TRY([[maybe_unused]] const auto nodes, pop_mark());
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
