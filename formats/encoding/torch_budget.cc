#include "formats/encoding/torch_budget.h"

#include <memory>
#include <variant>

namespace ckptverify {
namespace {

// An honest pickle is walked node by node, a shared node some times more often.
constexpr std::size_t kVisitsFree = 250'000;
constexpr std::size_t kVisitsEachNode = 4;
// An entry with its path is about 200 bytes, and has at least a node of its own; a pickle of 1 MB
// stays below 300 MB.
constexpr std::size_t kBytesFree = 32U << 20;
constexpr std::size_t kBytesEachNode = 224;
// Text that is looked at in the time of one step; what a call is given is looked at by all who ask
// what it makes.
constexpr std::size_t kTextEachStep = 8;
constexpr unsigned kArgumentDepth = 4;
constexpr std::size_t kWorkFree = 1'000'000;
constexpr std::size_t kWorkEachReference = 16;
// Copies of a text, as the name of several entries and as a value.
constexpr std::size_t kTextCopies = 4;
// What an entry has besides itself where it could not be interpreted or is a tensor.
constexpr std::size_t kNoteBytes = 64;
constexpr std::size_t kPieceBytes = sizeof(Piece) + 64;

std::size_t text_size(const PickleNode& node) {
  if (const auto text = node.string()) return text->size();
  if (const auto bytes = node.bytes()) return bytes->size();
  return 0;
}

std::size_t references(const PickleNode& node) {
  return node.items().size() + 2 * node.pairs().size() + node.added().size() + node.states().size();
}

/// Steps to look at a node and, so many levels down, at what it is made of.
std::size_t steps(const PickleNode& node, unsigned below) {
  std::size_t sum = 1 + text_size(node) / kTextEachStep + references(node);
  if (below == 0) return sum;
  for (const PickleNode* item : node.items()) sum += steps(*item, below - 1);
  for (const PickleNode* state : node.states()) sum += steps(*state, below - 1);
  return sum;
}

/// Bytes that a node has of its own, besides itself.
std::size_t held_bytes(const Node& node) {
  if (const auto* value = std::get_if<Value>(&node)) {
    if (const auto* text = std::get_if<std::string>(value)) return text->size();
    if (const auto* bytes = std::get_if<ByteString>(value)) return bytes->bytes.size();
    if (const auto* large = std::get_if<BigInteger>(value)) return large->magnitude.size();
    return 0;
  }
  if (const auto* opaque = std::get_if<Opaque>(&node)) return opaque->type.size();
  std::size_t sum = kPieceBytes;
  if (const auto* tensor = std::get_if<Tensor>(&node)) {
    for (const Piece& piece : tensor->pieces) {
      if (piece.run.owned != nullptr) sum += piece.run.owned->size();
    }
    return sum;
  }
  for (const auto& [name, part] : std::get<std::shared_ptr<const Composite>>(node)->parts) {
    sum += sizeof(part) + name.size() + held_bytes(part);
  }
  return sum;
}

Error too_much(const char* message) {
  return Error{.kind = ErrorKind::kUnsupported, .message = message};
}

}  // namespace

TorchBudget::TorchBudget(const PickleTree& tree)
    : visits_(kVisitsFree + kVisitsEachNode * tree.nodes().size()) {
  std::size_t referred = 0;
  std::size_t text = 0;
  for (const PickleNode& node : tree.nodes()) {
    referred += references(node);
    text += text_size(node);
  }
  work_ = kWorkFree + kWorkEachReference * referred + text;
  bytes_ = kBytesFree + kBytesEachNode * tree.nodes().size() + kTextCopies * text;
}

Result<void> TorchBudget::spend_work(std::size_t work) {
  if (work_ < work) return too_much("the pickle's objects are shared by too many others");
  work_ -= work;
  return {};
}

Result<void> TorchBudget::spend_bytes(std::size_t bytes) {
  if (bytes_ < bytes) return too_much("the pickle unfolds to more than its size allows");
  bytes_ -= bytes;
  return {};
}

Result<void> TorchBudget::visit(const PickleNode& node) {
  if (visits_ == 0) return too_much("the pickle's objects unfold to too many");
  --visits_;
  const bool made = node.kind == PickleKind::kCall || node.kind == PickleKind::kObject ||
                    node.kind == PickleKind::kPersistent;
  return spend_work(steps(node, made ? kArgumentDepth : 0));
}

Result<void> TorchBudget::read_text(std::size_t size) {
  return spend_work(size / kTextEachStep);
}

Result<void> TorchBudget::read_keys(std::span<const PicklePair> pairs) {
  std::size_t work = 0;
  for (const auto& [key, value] : pairs) work += steps(*key, 0);
  return spend_work(work);
}

Result<void> TorchBudget::keep(const std::string& path, const Node& node) {
  return spend_bytes(sizeof(Entry) + path.size() + held_bytes(node));
}

Result<void> TorchBudget::keep_note(const std::string& path) {
  return spend_bytes(kNoteBytes + path.size());
}

}  // namespace ckptverify
