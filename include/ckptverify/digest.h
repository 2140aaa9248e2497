/* The fingerprint's digests as a C interface, for probes inside trainers of any language. No
 * exceptions, no allocation visible to the caller, no state. Every function writes 16 bytes, the
 * canonical (big-endian) XXH3-128 of docs/fingerprint.md. Sizes are bytes; shapes count elements.
 */
#ifndef CKPTVERIFY_DIGEST_H
#define CKPTVERIFY_DIGEST_H

#include <stdint.h>

#if defined(__GNUC__)
#define CKPTVERIFY_EXPORT __attribute__((visibility("default")))
#else
#define CKPTVERIFY_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ckptverify_digest {
  uint8_t bytes[16];
} ckptverify_digest;

/* XXH3-128 of plain bytes: batches, RNG states, logits. */
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_bytes_digest(const void* data, uint64_t size);

/* A tensor of logical bytes: row-major, little-endian, contiguous. */
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_tensor_digest(const char* dtype, uint32_t rank,
                                                             const uint64_t* shape,
                                                             const void* data, uint64_t size);

CKPTVERIFY_EXPORT ckptverify_digest ckptverify_null_digest(void);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_bool_digest(int value);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_int_digest(int64_t value);
/* Of any integer: its magnitude, big-endian; leading zeros do not count. */
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_big_int_digest(int negative, const void* magnitude,
                                                              uint64_t size);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_float_digest(double value);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_string_digest(const char* text, uint64_t size);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_blob_digest(const void* data, uint64_t size);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_empty_list_digest(void);
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_empty_map_digest(void);

/* A component over its entries: paths relative to the component's root, NUL-terminated, in any
 * order. */
CKPTVERIFY_EXPORT ckptverify_digest ckptverify_component_digest(uint64_t count,
                                                                const char* const* paths,
                                                                const ckptverify_digest* digests);

/* 32 lower-case hexadecimal digits and a NUL. */
CKPTVERIFY_EXPORT void ckptverify_digest_text(ckptverify_digest digest, char text[33]);

#ifdef __cplusplus
}
#endif

#endif
