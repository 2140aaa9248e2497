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
// A node is about 250 bytes: 2 GB. The metadata of a thousand ranks has some hundred thousand.
inline constexpr std::size_t kPickleNodesMax = 8'000'000;
// One string or bytes operand; the largest seen are RNG states of a few KiB, and NumPy arrays.
inline constexpr std::uint64_t kPickleOperandMax = 1ULL << 31;
// Each is at least one byte of the pickle; more than nodes makes no sense.
inline constexpr std::size_t kPickleMemoMax = kPickleNodesMax;
inline constexpr std::size_t kPickleStackMax = kPickleNodesMax;

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
    if (stack_.size() >= kPickleStackMax) return fault("pickle's stack is too high");
    stack_.push_back(node);
    return {};
  }
  Result<void> push_new(PickleNode node) {
    if (tree_.nodes_.size() >= kPickleNodesMax) {
      return Error{.kind = ErrorKind::kUnsupported,
                   .message = "pickle makes too many objects; expected at most " +
                              std::to_string(kPickleNodesMax),
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
    if (size > kPickleOperandMax) {
      return fault("pickle operand is too long; found " + std::to_string(size) +
                   " bytes, expected at most " + std::to_string(kPickleOperandMax));
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

}  // namespace ckptverify
