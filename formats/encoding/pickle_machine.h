// The machine that runs a pickle symbolically: a stack, a memo, and one case an opcode, the opcodes
// in families. Private to pickle.cc and pickle_opcodes.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/encoding/pickle.h"
#include "formats/encoding/pickle_text.h"

namespace ckptverify {

inline constexpr unsigned kPickleProtocolMax = 5;
// A node is 24 bytes, and as much again for its place in another: 3 GB, the metadata of a run with
// some million chunks.
inline constexpr std::size_t kPickleNodesMax = 64'000'000;
// One string or bytes operand; the largest seen are RNG states of a few KiB, and NumPy arrays.
inline constexpr std::uint64_t kPickleOperandMax = 1ULL << 31;
// Each is at least one byte of the pickle; more than nodes makes no sense. The same for one list.
inline constexpr std::size_t kPickleMemoMax = kPickleNodesMax;
inline constexpr std::size_t kPickleStackMax = kPickleNodesMax;
inline constexpr std::size_t kPickleItemsMax = 1ULL << 31;
// Writers number their memo from 0 on, with gaps where other objects took a number: a number within
// this of the largest has a place in the table.
inline constexpr std::size_t kPickleMemoGapMax = 1024;

class PickleMachine {
 public:
  PickleMachine(Bytes bytes, std::uint64_t base) : reader_(bytes, base) {}
  Result<PickleTree> run();

 private:
  Result<void> step(std::uint8_t opcode);
  Result<void> step_scalar(std::uint8_t opcode);
  Result<void> step_text(std::uint8_t opcode);
  Result<void> step_names(std::uint8_t opcode, std::string_view module);
  Result<void> step_bytes(std::uint8_t opcode);
  Result<void> step_container(std::uint8_t opcode);
  Result<void> step_filled(std::uint8_t opcode);
  Result<void> step_object(std::uint8_t opcode);
  Result<void> step_memo(std::uint8_t opcode);
  Result<void> step_stack(std::uint8_t opcode);

  Error fault(std::string message, CauseKind cause = CauseKind::kBitrot) const {
    return {.message = std::move(message), .offset = at_, .cause = Cause{cause}};
  }
  Error unknown(std::uint8_t opcode) const {
    return fault("pickle has an unknown opcode; found " + std::to_string(opcode));
  }
  /// Asked before every opcode, of which each makes a few nodes at most.
  Result<void> room() const {
    if (stack_.size() >= kPickleStackMax) return fault("pickle's stack is too high");
    if (tree_.nodes_.size() < kPickleNodesMax) return {};
    return Error{.kind = ErrorKind::kUnsupported,
                 .message = "pickle makes too many objects; expected at most " +
                            std::to_string(kPickleNodesMax),
                 .offset = at_};
  }
  void push(PickleNode& node) { stack_.push_back(&node); }
  void push_integer(std::int64_t value) { push(tree_.add_integer(value, at_)); }
  void push_value(Value value) { push(tree_.add_value(std::move(value), at_)); }
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
  /// The uppermost of the stack, which stay on it until they are dropped.
  Result<PickleItems> last(std::size_t count) const {
    if (stack_.size() - floor() < count) return fault("pickle takes from an empty stack");
    return PickleItems(stack_).last(count);
  }
  Result<PickleItems> last_to_mark() const {
    if (marks_.empty()) return fault("pickle has no mark to go back to");
    return PickleItems(stack_).subspan(marks_.back());
  }
  void drop(PickleItems items) { stack_.resize(stack_.size() - items.size()); }
  void drop_to_mark(PickleItems items) {
    drop(items);
    marks_.pop_back();
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Result<Bytes> operand(std::uint64_t size) {
    if (size > kPickleOperandMax) {
      return fault("pickle operand is too long; found " + std::to_string(size) +
                   " bytes, expected at most " + std::to_string(kPickleOperandMax));
    }
    return reader_.take(size);
  }
  /// A tuple, list, set, call or object of the uppermost of the stack.
  void push_sequence(PickleKind kind, PickleItems items) {
    PickleNode& node = tree_.add_sequence(kind, items, at_);
    drop(items);
    push(node);
  }
  void push_object(PickleKind kind, PickleItems items) {
    PickleNode& node = tree_.add_object(kind, items, at_);
    drop(items);
    push(node);
  }
  Result<void> push_text(std::uint64_t size) {
    CKPTVERIFY_TRY(const auto text, operand(size));
    if (!is_utf8(as_text(text), Surrogates::kAllowed)) return fault("pickle string is not UTF-8");
    push(tree_.add_text(PickleKind::kString, text, at_));
    return {};
  }
  void push_kept(PickleKind kind, std::string_view text) {
    push(tree_.add_text(kind, as_bytes(tree_.keep(text)), at_));
  }
  Result<PickleNode*> global(std::string_view module, std::string_view name);
  Result<void> set_items(PickleNode& target, PickleItems flat);
  Result<void> append(PickleNode& target, PickleItems items);
  Result<void> remember(std::uint64_t index);
  Result<void> recall(std::uint64_t index);

  ByteReader reader_;
  PickleTree tree_;
  std::vector<PickleNode*> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleNode*> memo_;  // null where nothing is remembered
  std::unordered_map<std::uint64_t, PickleNode*> far_memo_;
  std::size_t memo_count_ = 0;
  std::uint64_t at_ = 0;  // the opcode being read
};

}  // namespace ckptverify
