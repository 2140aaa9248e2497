/* The fingerprint's digests as a C interface, for probes inside trainers of any language. No
 * exceptions, no allocation visible to the caller, no state. Every function writes 16 bytes, the
 * canonical (big-endian) XXH3-128 of docs/fingerprint.md. Sizes are bytes; shapes count elements.
 */
#ifndef CKPTVERIFY_DIGEST_H
#define CKPTVERIFY_DIGEST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckptverify_digest {
  uint8_t bytes[16];
} ckptverify_digest;

/* XXH3-128 of plain bytes: batches, RNG states, logits. */
ckptverify_digest ckptverify_bytes_digest(const void* data, uint64_t size);

/* A tensor of logical bytes: row-major, little-endian, contiguous. */
ckptverify_digest ckptverify_tensor_digest(const char* dtype, uint32_t rank, const uint64_t* shape,
                                           const void* data, uint64_t size);

ckptverify_digest ckptverify_null_digest(void);
ckptverify_digest ckptverify_bool_digest(int value);
ckptverify_digest ckptverify_int_digest(int64_t value);
ckptverify_digest ckptverify_float_digest(double value);
ckptverify_digest ckptverify_string_digest(const char* text, uint64_t size);
ckptverify_digest ckptverify_blob_digest(const void* data, uint64_t size);
ckptverify_digest ckptverify_empty_list_digest(void);
ckptverify_digest ckptverify_empty_map_digest(void);

/* A component over its entries: paths relative to the component's root, NUL-terminated, in any
 * order. */
ckptverify_digest ckptverify_component_digest(uint64_t count, const char* const* paths,
                                              const ckptverify_digest* digests);

/* 32 lower-case hexadecimal digits and a NUL. */
void ckptverify_digest_text(ckptverify_digest digest, char text[33]);

#ifdef __cplusplus
}
#endif

#endif
