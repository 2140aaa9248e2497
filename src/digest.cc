// The C interface over the fingerprint's digests. Pointers of empty data may be null. Nothing here
// may throw into a trainer: the few allocations left are a value's encoding and a component's list.
#include "ckptverify/digest.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ckptverify/fingerprint.h"

namespace {

using ckptverify::Bytes;
using ckptverify::Digest;
using ckptverify::Value;

ckptverify_digest as_c(const Digest& digest) noexcept {
  ckptverify_digest result;
  static_assert(sizeof result.bytes == sizeof digest.bytes);
  std::memcpy(result.bytes, digest.bytes.data(), sizeof result.bytes);
  return result;
}

Bytes bytes_of(const void* data, std::uint64_t size) noexcept {
  return size == 0 ? Bytes() : Bytes(static_cast<const std::byte*>(data), size);
}

ckptverify_digest digest_of(const Value& value) noexcept {
  return as_c(ckptverify::value_digest(value));
}

}  // namespace

ckptverify_digest ckptverify_bytes_digest(const void* data, uint64_t size) {
  return as_c(ckptverify::hash_bytes(bytes_of(data, size)));
}

ckptverify_digest ckptverify_tensor_digest(const char* dtype, uint32_t rank, const uint64_t* shape,
                                           const void* data, uint64_t size) {
  const std::span<const std::uint64_t> dimensions(rank == 0 ? nullptr : shape, rank);
  return as_c(ckptverify::tensor_digest(dtype, dimensions, bytes_of(data, size)));
}

ckptverify_digest ckptverify_null_digest(void) {
  return digest_of(ckptverify::Null{});
}

ckptverify_digest ckptverify_bool_digest(int value) {
  return digest_of(value != 0);
}

ckptverify_digest ckptverify_int_digest(int64_t value) {
  return digest_of(Value(std::in_place_type<std::int64_t>, value));
}

ckptverify_digest ckptverify_big_int_digest(int negative, const void* magnitude, uint64_t size) {
  const Bytes bytes = bytes_of(magnitude, size);
  return digest_of(ckptverify::BigInteger{negative != 0, {bytes.begin(), bytes.end()}});
}

ckptverify_digest ckptverify_float_digest(double value) {
  return digest_of(value);
}

ckptverify_digest ckptverify_string_digest(const char* text, uint64_t size) {
  return digest_of(std::string(ckptverify::as_text(bytes_of(text, size))));
}

ckptverify_digest ckptverify_blob_digest(const void* data, uint64_t size) {
  const Bytes bytes = bytes_of(data, size);
  return digest_of(ckptverify::ByteString{{bytes.begin(), bytes.end()}});
}

ckptverify_digest ckptverify_empty_list_digest(void) {
  return digest_of(ckptverify::EmptyList{});
}

ckptverify_digest ckptverify_empty_map_digest(void) {
  return digest_of(ckptverify::EmptyMap{});
}

ckptverify_digest ckptverify_component_digest(uint64_t count, const char* const* paths,
                                              const ckptverify_digest* digests) {
  std::vector<std::pair<std::string, Digest>> entries(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    entries[i].first = paths[i];
    std::memcpy(entries[i].second.bytes.data(), digests[i].bytes, sizeof digests[i].bytes);
  }
  return as_c(ckptverify::component_digest(std::move(entries)));
}

void ckptverify_digest_text(ckptverify_digest digest, char text[33]) {
  Digest ours;
  std::memcpy(ours.bytes.data(), digest.bytes, sizeof digest.bytes);
  const std::string hex = ours.hex();
  std::memcpy(text, hex.c_str(), hex.size() + 1);
}
