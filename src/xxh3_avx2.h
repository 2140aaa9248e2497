/* XXH3-128 for machines with AVX2. The state is an XXH3_state_t of the same xxhash header. */
#ifndef CKPTVERIFY_SRC_XXH3_AVX2_H
#define CKPTVERIFY_SRC_XXH3_AVX2_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void ckptverify_xxh3_avx2_update(void* state, const void* data, size_t size);
/* Of the whole data; 16 canonical bytes. */
void ckptverify_xxh3_avx2(const void* data, size_t size, unsigned char* digest);

#ifdef __cplusplus
}
#endif

#endif
