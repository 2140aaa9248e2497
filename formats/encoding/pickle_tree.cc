// The nodes of a pickle: what they hold, and how they are made.
#include <algorithm>
#include <array>

#include "formats/encoding/pickle.h"

namespace ckptverify {

std::optional<std::string_view> PickleNode::string() const {
  if (kind != PickleKind::kString) return std::nullopt;
  return std::string_view(content_.text, size_);
}

std::optional<Bytes> PickleNode::bytes() const {
  if (kind != PickleKind::kBytes && kind != PickleKind::kByteArray) return std::nullopt;
  return as_bytes(std::string_view(content_.text, size_));
}

std::optional<std::int64_t> PickleNode::integer() const {
  if (kind != PickleKind::kInteger) return std::nullopt;
  return content_.integer;
}

std::optional<bool> PickleNode::boolean() const {
  if (kind != PickleKind::kBool) return std::nullopt;
  return content_.integer != 0;
}

std::optional<double> PickleNode::number() const {
  if (kind != PickleKind::kFloat) return std::nullopt;
  return content_.number;
}

Value PickleNode::value() const {
  switch (kind) {
    case PickleKind::kBool:
      return content_.integer != 0;
    case PickleKind::kInteger:
      return content_.integer;
    case PickleKind::kBigInteger:
      return *content_.value;
    case PickleKind::kFloat:
      return content_.number;
    case PickleKind::kString:
      return std::string(content_.text, size_);
    case PickleKind::kBytes:
    case PickleKind::kByteArray: {
      const Bytes all = *bytes();
      return ByteString{{all.begin(), all.end()}};
    }
    default:
      return Null{};
  }
}

std::string_view PickleNode::module() const {
  return kind == PickleKind::kGlobal ? content_.name->module : std::string_view();
}

std::string_view PickleNode::name() const {
  return kind == PickleKind::kGlobal ? content_.name->name : std::string_view();
}

PickleItems PickleNode::items() const {
  switch (kind) {
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet:
    case PickleKind::kFrozenSet:
      return {content_.items, size_};
    case PickleKind::kPersistent:
      return {&content_.only, 1};
    case PickleKind::kCall:
    case PickleKind::kObject:
      return {content_.body->items, size_};
    default:
      return {};
  }
}

std::span<const PicklePair> PickleNode::pairs() const {
  if (kind == PickleKind::kDict) return {content_.pairs, size_};
  if (!has_body() || content_.body->extras == nullptr) return {};
  return {content_.body->extras->pairs, content_.body->extras->pair_count};
}

PickleItems PickleNode::added() const {
  if (!has_body() || content_.body->extras == nullptr) return {};
  return {content_.body->extras->added, content_.body->extras->added_count};
}

PickleItems PickleNode::states() const {
  if (!has_body()) return {};
  const Body& body = *content_.body;
  if (body.state != nullptr) return {&body.state, 1};
  if (body.extras == nullptr) return {};
  return {body.extras->states, body.extras->state_count};
}

PickleNode& PickleTree::add(PickleKind kind, std::uint64_t offset) {
  PickleNode& node = nodes_.emplace_back();
  node.kind = kind;
  node.offset = offset;
  return node;
}

PickleNode& PickleTree::add_bool(bool value, std::uint64_t offset) {
  PickleNode& node = add(PickleKind::kBool, offset);
  node.content_.integer = value ? 1 : 0;
  return node;
}

PickleNode& PickleTree::add_integer(std::int64_t value, std::uint64_t offset) {
  PickleNode& node = add(PickleKind::kInteger, offset);
  node.content_.integer = value;
  return node;
}

PickleNode& PickleTree::add_float(double value, std::uint64_t offset) {
  PickleNode& node = add(PickleKind::kFloat, offset);
  node.content_.number = value;
  return node;
}

PickleNode& PickleTree::add_value(Value value, std::uint64_t offset) {
  if (const auto* small = std::get_if<std::int64_t>(&value)) return add_integer(*small, offset);
  PickleNode& node = add(PickleKind::kBigInteger, offset);
  node.content_.value = &values_.emplace_back(std::move(value));
  return node;
}

PickleNode& PickleTree::add_text(PickleKind kind, Bytes text, std::uint64_t offset) {
  PickleNode& node = add(kind, offset);
  node.content_.text = as_text(text).data();
  node.size_ = static_cast<std::uint32_t>(text.size());
  return node;
}

PickleNode& PickleTree::add_sequence(PickleKind kind, PickleItems items, std::uint64_t offset) {
  PickleNode& node = add(kind, offset);
  node.content_.items = nullptr;
  if (kind == PickleKind::kList || kind == PickleKind::kSet) {
    append(node, items);  // may grow
    return node;
  }
  node.content_.items = arena_.copy(items);
  node.size_ = static_cast<std::uint32_t>(items.size());
  return node;
}

PickleNode& PickleTree::add_dict(std::span<const PicklePair> pairs, std::uint64_t offset) {
  PickleNode& node = add(PickleKind::kDict, offset);
  node.content_.pairs = nullptr;
  arena_.append(node.content_.pairs, node.size_, pairs);
  return node;
}

PickleNode& PickleTree::add_global(std::string_view module, std::string_view name,
                                   std::uint64_t offset) {
  PickleNode& node = add(PickleKind::kGlobal, offset);
  node.content_.name = new (arena_.take<PickleNode::Name>(1)) PickleNode::Name{module, name};
  return node;
}

PickleNode& PickleTree::add_persistent(PickleNode& id, std::uint64_t offset) {
  PickleNode& node = add(PickleKind::kPersistent, offset);
  node.content_.only = &id;
  return node;
}

PickleNode& PickleTree::add_object(PickleKind kind, PickleItems items, std::uint64_t offset) {
  PickleNode& node = add(kind, offset);
  node.content_.body = new (arena_.take<PickleNode::Body>(1)) PickleNode::Body{};
  CKPTVERIFY_ASSERT(items.size() <= std::size(node.content_.body->items));
  std::copy(items.begin(), items.end(), node.content_.body->items);
  node.size_ = static_cast<std::uint32_t>(items.size());
  return node;
}

PickleNode::Extras& PickleTree::extras_of(PickleNode& object) {
  PickleNode::Extras*& extras = object.content_.body->extras;
  if (extras == nullptr) {
    extras = new (arena_.take<PickleNode::Extras>(1)) PickleNode::Extras{};
  }
  return *extras;
}

void PickleTree::append(PickleNode& target, PickleItems items) {
  if (items.empty()) return;
  if (target.has_body()) {
    PickleNode::Extras& extras = extras_of(target);
    arena_.append(extras.added, extras.added_count, items);
    return;
  }
  arena_.append(target.content_.items, target.size_, items);
}

void PickleTree::set_items(PickleNode& target, PickleItems flat) {
  if (flat.empty()) return;
  const bool object = target.has_body();
  PicklePair*& pairs = object ? extras_of(target).pairs : target.content_.pairs;
  std::uint32_t& count = object ? extras_of(target).pair_count : target.size_;
  arena_.reserve(pairs, count, flat.size() / 2);
  for (std::size_t i = 0; i + 1 < flat.size(); i += 2) {
    new (pairs + count++) PicklePair(flat[i], flat[i + 1]);
  }
}

void PickleTree::add_state(PickleNode& target, PickleNode& state) {
  PickleNode::Body& body = *target.content_.body;
  if (target.states().empty()) {
    body.state = &state;
    return;
  }
  PickleNode::Extras& extras = extras_of(target);
  if (body.state != nullptr) {
    arena_.append(extras.states, extras.state_count, PickleItems(&body.state, 1));
  }
  body.state = nullptr;
  PickleNode* const added = &state;
  arena_.append(extras.states, extras.state_count, PickleItems(&added, 1));
}

std::string_view PickleTree::keep(std::string_view text) {
  return {arena_.copy(std::span(text)), text.size()};
}

Bytes PickleTree::keep(std::vector<std::byte> bytes) {
  return kept_.emplace_back(std::move(bytes));
}

}  // namespace ckptverify
