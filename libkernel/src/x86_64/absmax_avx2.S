/* The largest magnitude, AVX2. Replaces src/reference/absmax.c. 32, then 8, then 1 element at a time. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* uint32_t mahe_absmax_avx2(const float *x, size_t n)
 *      for (i = 0; i < n; i++) absmax = max(absmax, x[i] as uint32 & 0x7fffffff);
 *      return absmax;
 * rdi x, rsi n. ymm0-3 largest so far in each lane, ymm4 0x7fffffff. */
ENTRY(mahe_absmax_avx2)
    vpxor xmm0, xmm0, xmm0
    vpxor xmm1, xmm1, xmm1
    vpxor xmm2, xmm2, xmm2
    vpxor xmm3, xmm3, xmm3
    vpcmpeqd ymm4, ymm4, ymm4
    vpsrld ymm4, ymm4, 1
    mov rcx, rsi
    shr rcx, 5
    jz LOCAL(largest_eights)
    .p2align 5
LOCAL(largest_block):
    prefetcht0 byte ptr [rdi + AHEAD_ONE]
    prefetcht0 byte ptr [rdi + AHEAD_ONE + 64]
    vpand ymm5, ymm4, ymmword ptr [rdi]
    vpand ymm6, ymm4, ymmword ptr [rdi + 32]
    vpand ymm7, ymm4, ymmword ptr [rdi + 64]
    vpand ymm8, ymm4, ymmword ptr [rdi + 96]
    vpmaxud ymm0, ymm0, ymm5
    vpmaxud ymm1, ymm1, ymm6
    vpmaxud ymm2, ymm2, ymm7
    vpmaxud ymm3, ymm3, ymm8
    add rdi, 128
    dec rcx
    jnz LOCAL(largest_block)
    vpmaxud ymm0, ymm0, ymm1
    vpmaxud ymm2, ymm2, ymm3
    vpmaxud ymm0, ymm0, ymm2
LOCAL(largest_eights):
    mov ecx, esi
    shr ecx, 3
    and ecx, 3
    jz LOCAL(largest_ones)
LOCAL(largest_eight):
    vpand ymm5, ymm4, ymmword ptr [rdi]
    vpmaxud ymm0, ymm0, ymm5
    add rdi, 32
    dec ecx
    jnz LOCAL(largest_eight)
LOCAL(largest_ones):
    and esi, 7
    jz LOCAL(largest_lanes)
LOCAL(largest_one):
    vmovd xmm5, dword ptr [rdi]             /* the other seven lanes become 0 */
    vpand ymm5, ymm5, ymm4
    vpmaxud ymm0, ymm0, ymm5
    add rdi, 4
    dec esi
    jnz LOCAL(largest_one)
LOCAL(largest_lanes):                       /* the largest of eight lanes, of four, of two */
    vextracti128 xmm1, ymm0, 1
    vpmaxud xmm0, xmm0, xmm1
    vpshufd xmm1, xmm0, 0x4e
    vpmaxud xmm0, xmm0, xmm1
    vpshufd xmm1, xmm0, 0xb1
    vpmaxud xmm0, xmm0, xmm1
    vmovd eax, xmm0
    vzeroupper
    ret
END(mahe_absmax_avx2)
#endif

#include "../note.h"
