/* xxhash once more, compiled for AVX2 and called only where the processor has it. It is C and a
 * file of its own so that no inline function of C++ is compiled for AVX2 and then, by the linker,
 * chosen for every machine.
 */
#include "src/xxh3_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

void ckptverify_xxh3_avx2_update(void* state, const void* data, size_t size) {
  XXH3_128bits_update((XXH3_state_t*)state, data, size);
}

void ckptverify_xxh3_avx2(const void* data, size_t size, unsigned char* digest) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  for (size_t i = 0; i < sizeof canonical.digest; ++i) digest[i] = canonical.digest[i];
}
