// The digests of docs/fingerprint.md: what is hashed, in which order, for a tensor, a value, a
// composite, a component and a checkpoint. xxhash is compiled in, here for every machine and in
// xxh3_avx2.c once more: where every byte goes through several digests while it is in the cache,
// the wider code is worth its file.
#include "ckptverify/fingerprint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "src/leaves.h"
#include "src/xxh3_avx2.h"

namespace ckptverify {
namespace {

Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest digest;
  std::memcpy(digest.bytes.data(), bytes.digest, digest.bytes.size());
  return digest;
}

#if defined(__x86_64__)
bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

// Below it the choice costs more than the wider code gains.
constexpr std::size_t kWideSizeMin = 1024;

void update_state(XXH3_state_t& state, Bytes bytes) {
  if (bytes.empty()) return;
#if defined(__x86_64__)
  if (bytes.size() >= kWideSizeMin && has_avx2()) {
    ckptverify_xxh3_avx2_update(&state, bytes.data(), bytes.size());
    return;
  }
#endif
  XXH3_128bits_update(&state, bytes.data(), bytes.size());
}

/// H over fields that are joined: see the beginning of docs/fingerprint.md for their encodings.
class Hasher {
 public:
  /// `tag` is hashed with a zero byte behind it and without a length.
  explicit Hasher(std::string_view tag) {
    XXH3_128bits_reset(&state_);
    marker(tag);
  }

  Hasher& marker(std::string_view tag) {
    constexpr std::byte zero{0};
    update(as_bytes(tag));
    return update(Bytes(&zero, 1));
  }

  Hasher& integer(std::uint64_t value) {
    std::array<std::byte, 8> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
    }
    return update(bytes);
  }

  Hasher& string(std::string_view text) {
    integer(text.size());
    return update(as_bytes(text));
  }

  Hasher& digest(const Digest& digest) { return update(std::as_bytes(std::span(digest.bytes))); }

  Hasher& update(Bytes bytes) {
    update_state(state_, bytes);
    return *this;
  }

  Digest finish() const { return canonical(XXH3_128bits_digest(&state_)); }

 private:
  XXH3_state_t state_;
};

/// Names are compared as bytes, not as characters of some locale. Of two equal names the smaller
/// digest comes first, so that the order they were given in does not matter.
Digest named_digests(std::string_view tag, const std::string_view* kind,
                     std::vector<std::pair<std::string, Digest>>& parts) {
  // The entries of a checkpoint come sorted, up to a million of them.
  if (!std::is_sorted(parts.begin(), parts.end())) std::sort(parts.begin(), parts.end());
  Hasher hasher(tag);
  if (kind != nullptr) hasher.string(*kind);
  hasher.integer(parts.size());
  for (const auto& [name, digest] : parts) hasher.string(name).digest(digest);
  return hasher.finish();
}

Hasher tensor_header(std::string_view dtype, std::span<const std::uint64_t> shape,
                     std::uint64_t size) {
  Hasher hasher("ckv1.tensor");
  hasher.string(dtype).integer(shape.size());
  for (const std::uint64_t dimension : shape) hasher.integer(dimension);
  hasher.integer(size);
  return hasher;
}

int hex_digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::string Digest::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string Digest::text() const {
  return "ckv1:" + hex();
}

std::optional<Digest> digest_from_hex(std::string_view hex) {
  Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = hex_digit_value(hex[2 * i]);
    const int low = hex_digit_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

static_assert(sizeof(XXH3_state_t) == sizeof(ByteHasher));
static_assert(alignof(XXH3_state_t) <= alignof(ByteHasher));

ByteHasher::ByteHasher() {
  XXH3_128bits_reset(new (state_.data()) XXH3_state_t);
}

void ByteHasher::update(Bytes bytes) {
  update_state(*std::launder(reinterpret_cast<XXH3_state_t*>(state_.data())), bytes);
}

Digest ByteHasher::finish() const {
  return canonical(
      XXH3_128bits_digest(std::launder(reinterpret_cast<const XXH3_state_t*>(state_.data()))));
}

Digest hash_bytes(Bytes bytes) {
#if defined(__x86_64__)
  if (bytes.size() >= kWideSizeMin && has_avx2()) {
    Digest digest;
    ckptverify_xxh3_avx2(bytes.data(), bytes.size(), digest.bytes.data());
    return digest;
  }
#endif
  return canonical(XXH3_128bits(bytes.empty() ? nullptr : bytes.data(), bytes.size()));
}

Digest digest_of_leaves(std::string_view dtype, std::span<const std::uint64_t> shape,
                        std::uint64_t size, std::span<const Digest> leaves) {
  CKPTVERIFY_ASSERT(leaves.size() == leaf_count(size));
  Hasher hasher = tensor_header(dtype, shape, size);
  for (const Digest& leaf : leaves) hasher.digest(leaf);
  return hasher.finish();
}

Digest file_digest_of_leaves(std::uint64_t size, std::span<const Digest> leaves) {
  CKPTVERIFY_ASSERT(leaves.size() == leaf_count(size));
  Hasher hasher("ckv1.file");
  hasher.integer(size);
  for (const Digest& leaf : leaves) hasher.digest(leaf);
  return hasher.finish();
}

Digest file_digest(Bytes bytes) {
  std::vector<Digest> leaves;
  for (Bytes rest = bytes; !rest.empty();
       rest = rest.subspan(std::min<std::size_t>(kLeafSize, rest.size()))) {
    leaves.push_back(hash_bytes(rest.first(std::min<std::size_t>(kLeafSize, rest.size()))));
  }
  return file_digest_of_leaves(bytes.size(), leaves);
}

Digest tensor_digest(std::string_view dtype, std::span<const std::uint64_t> shape, Bytes logical) {
  Hasher hasher = tensor_header(dtype, shape, logical.size());
  for (Bytes rest = logical; !rest.empty();) {
    const Bytes leaf = rest.first(std::min<std::size_t>(kLeafSize, rest.size()));
    hasher.digest(hash_bytes(leaf));
    rest = rest.subspan(leaf.size());
  }
  return hasher.finish();
}

Digest absent_tensor_digest(std::string_view dtype, std::span<const std::uint64_t> shape) {
  const auto known = dtype_named(dtype);
  CKPTVERIFY_ASSERT(known.has_value());
  Tensor tensor;
  tensor.dtype = *known;
  tensor.shape.assign(shape.begin(), shape.end());
  return tensor_header(dtype, shape, logical_size(tensor)).marker("ckv1.absent").finish();
}

Digest value_digest(const Value& value) {
  constexpr std::string_view kTag("ckv1.value\0", 11);
  const std::vector<std::byte> cbor = value_cbor(value);
  // Most values are a few bytes, of which one call digests the same faster than a state.
  std::array<std::byte, 64> tagged;
  if (kTag.size() + cbor.size() > tagged.size()) {
    return Hasher(kTag.substr(0, kTag.size() - 1)).update(cbor).finish();
  }
  const auto body = std::copy(as_bytes(kTag).begin(), as_bytes(kTag).end(), tagged.begin());
  const auto end = std::copy(cbor.begin(), cbor.end(), body);
  return hash_bytes(Bytes(tagged.begin(), end));
}

Digest composite_digest(std::string_view kind, std::vector<std::pair<std::string, Digest>> parts) {
  return named_digests("ckv1.node", &kind, parts);
}

Digest component_digest(std::vector<std::pair<std::string, Digest>> entries) {
  return named_digests("ckv1.component", nullptr, entries);
}

Digest checkpoint_digest(std::vector<std::pair<std::string, Digest>> components) {
  return named_digests("ckv1.checkpoint", nullptr, components);
}

}  // namespace ckptverify
