// The pickle machine: a stack, a memo, and one case an opcode. Source: Lib/pickletools.py of
// CPython, which documents every opcode; BINFLOAT alone is big-endian.
#include "formats/encoding/pickle.h"

#include <charconv>
#include <unordered_map>
#include <utility>

#include "formats/encoding/pickle_text.h"

namespace ckptverify {
namespace {

constexpr unsigned kProtocolMax = 5;
// A node is about 250 bytes: 2 GB. The metadata of a thousand ranks has some hundred thousand.
constexpr std::size_t kNodesMax = 8'000'000;
// One string or bytes operand; the largest seen are RNG states of a few KiB, and NumPy arrays.
constexpr std::uint64_t kOperandMax = 1ULL << 31;
// Each is at least one byte of the pickle; more than nodes makes no sense.
constexpr std::size_t kMemoMax = kNodesMax;
constexpr std::size_t kStackMax = kNodesMax;

}  // namespace

class PickleMachine {
 public:
  PickleMachine(Bytes bytes, std::uint64_t base) : reader_(bytes, base) {}
  Result<PickleTree> run();

 private:
  Result<void> step(std::uint8_t opcode);
  Result<bool> step_scalar(std::uint8_t opcode);
  Result<bool> step_text(std::uint8_t opcode);
  Result<bool> step_bytes(std::uint8_t opcode);
  Result<bool> step_container(std::uint8_t opcode);
  Result<bool> step_object(std::uint8_t opcode);
  Result<bool> step_memo(std::uint8_t opcode);

  Error fault(std::string message, CauseKind cause = CauseKind::kBitrot) const {
    return {.message = std::move(message), .offset = at_, .cause = Cause{cause}};
  }
  Result<void> push(PickleNode* node) {
    if (stack_.size() >= kStackMax) return fault("pickle's stack is too high");
    stack_.push_back(node);
    return {};
  }
  Result<void> push_new(PickleNode node) {
    if (tree_.nodes_.size() >= kNodesMax) {
      return Error{
          .kind = ErrorKind::kUnsupported,
          .message = "pickle makes too many objects; expected at most " + std::to_string(kNodesMax),
          .offset = at_};
    }
    node.offset = at_;
    return push(&tree_.add(std::move(node)));
  }
  Result<void> push_value(Value value) { return push_new({.value = std::move(value)}); }
  Result<void> push_bytes(PickleKind kind, Bytes bytes) {
    return push_new(
        {.kind = kind, .value = ByteString{std::vector<std::byte>(bytes.begin(), bytes.end())}});
  }
  Result<PickleNode*> pop() {
    if (stack_.size() <= floor()) return fault("pickle takes from an empty stack");
    PickleNode* node = stack_.back();
    stack_.pop_back();
    return node;
  }
  Result<PickleNode*> top() {
    if (stack_.size() <= floor()) return fault("pickle looks at an empty stack");
    return stack_.back();
  }
  Result<std::vector<PickleNode*>> pop_many(std::size_t count) {
    if (stack_.size() - floor() < count) return fault("pickle takes from an empty stack");
    std::vector<PickleNode*> nodes(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return nodes;
  }
  Result<std::vector<PickleNode*>> pop_mark() {
    if (marks_.empty()) return fault("pickle has no mark to go back to");
    auto nodes = pop_many(stack_.size() - marks_.back());
    marks_.pop_back();
    return nodes;
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Result<Bytes> operand(std::uint64_t size) {
    if (size > kOperandMax) {
      return fault("pickle operand is too long; found " + std::to_string(size) +
                   " bytes, expected at most " + std::to_string(kOperandMax));
    }
    return reader_.take(size);
  }
  Result<void> push_tuple(std::size_t count) {
    CKPTVERIFY_TRY(auto items, pop_many(count));
    return push_new({.kind = PickleKind::kTuple, .items = std::move(items)});
  }
  Result<void> push_text(std::uint64_t size) {
    CKPTVERIFY_TRY(const auto text, operand(size));
    if (!is_utf8(as_text(text), Surrogates::kAllowed)) return fault("pickle string is not UTF-8");
    return push_value(std::string(as_text(text)));
  }
  Result<void> push_integer(Bytes bytes) { return push_value(integer_of_bytes(bytes)); }
  Result<void> push_global(std::string_view module, std::string_view name) {
    return push_new(
        {.kind = PickleKind::kGlobal, .module = std::string(module), .name = std::string(name)});
  }
  Result<void> add_pairs(PickleNode& target, std::vector<PickleNode*> flat);
  Result<void> add_items(PickleNode& target, const std::vector<PickleNode*>& items);
  Result<void> remember(std::uint64_t index);
  Result<void> recall(std::uint64_t index);

  ByteReader reader_;
  PickleTree tree_;
  std::vector<PickleNode*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleNode*> memo_;
  std::uint64_t at_ = 0;  // the opcode being read
};

Result<void> PickleMachine::remember(std::uint64_t index) {
  CKPTVERIFY_TRY(PickleNode * node, top());
  if (memo_.size() >= kMemoMax) return fault("pickle's memo is too large");
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
      if (marks_.size() >= kStackMax) return fault("pickle's stack is too high");
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
      if (protocol > kProtocolMax || reader_.position() != 2) {
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
