/* Fixed-point fold of one quantised block, AVX2. Replaces the folding half of src/reference/blocks.c. 8, then 1 element
 * at a time.
 *
 * The float32 product is that of decode_avx2.S; the rest, with M = 1.5 * 2^52, is that of fold_avx2.S, which says why
 * bits(p + M) - bits(M) = rint(p).
 */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"
#include "nibbles.h"

    .text

/* What both functions share: rdi acc, rsi codes, rdx n; ymm0 scale, ymm1 factor, ymm5 M, in every lane; r9 = M. */
.macro fold_constants
    vbroadcastss ymm0, xmm0
    vbroadcastsd ymm1, xmm1
    movabs r9, 0x4338000000000000
    vmovq xmm5, r9
    vpbroadcastq ymm5, xmm5
.endm

/* acc[0..8) += rint((double)(ymm2 * scale) * factor), ymm2 being 8 codes as floats. */
.macro fold_8
    vmulps ymm2, ymm0, ymm2
    vextractf128 xmm3, ymm2, 1
    vcvtps2pd ymm2, xmm2
    vcvtps2pd ymm3, xmm3
    vmulpd ymm2, ymm1, ymm2
    vmulpd ymm3, ymm1, ymm3
    vaddpd ymm2, ymm2, ymm5
    vaddpd ymm3, ymm3, ymm5
    vpsubq ymm2, ymm2, ymm5
    vpsubq ymm3, ymm3, ymm5
    vpaddq ymm2, ymm2, ymmword ptr [rdi]
    vpaddq ymm3, ymm3, ymmword ptr [rdi + 32]
    vmovdqu ymmword ptr [rdi], ymm2
    vmovdqu ymmword ptr [rdi + 32], ymm3
    add rdi, 64
.endm

/* The same for 1 element, its code in xmm2. */
.macro fold_1
    vmulss xmm2, xmm0, xmm2
    vcvtss2sd xmm2, xmm2, xmm2
    vmulsd xmm2, xmm1, xmm2
    vaddsd xmm2, xmm2, xmm5
    vmovq r8, xmm2
    sub r8, r9
    add qword ptr [rdi], r8
    add rdi, 8
.endm

/* void mahe_fold_q8_avx2(int64_t *acc, const int8_t *codes, float scale, double factor, size_t n)
 *      for (i = 0; i < n; i++) acc[i] = acc[i] + (int64_t)rint((double)((float)codes[i] * scale) * factor);
 * rdi acc, rsi codes, xmm0 scale, xmm1 factor, rdx n. */
ENTRY(mahe_fold_q8_avx2)
    fold_constants
    mov rcx, rdx
    shr rcx, 3
    jz LOCAL(q8_ones)
    .p2align 5
LOCAL(q8_eight):
    vpmovsxbd ymm2, qword ptr [rsi]
    vcvtdq2ps ymm2, ymm2
    fold_8
    add rsi, 8
    dec rcx
    jnz LOCAL(q8_eight)
LOCAL(q8_ones):
    and edx, 7
    jz LOCAL(q8_done)
LOCAL(q8_one):
    movsx eax, byte ptr [rsi]
    vcvtsi2ss xmm2, xmm0, eax
    fold_1
    inc rsi
    dec edx
    jnz LOCAL(q8_one)
LOCAL(q8_done):
    vzeroupper
    ret
END(mahe_fold_q8_avx2)

/* void mahe_fold_q4_avx2(int64_t *acc, const uint8_t *codes, float scale, double factor, size_t n)
 *      for (i = 0; i < n; i++)
 *          acc[i] = acc[i] + (int64_t)rint((double)((float)((codes[i / 2] >> i % 2 * 4 & 15) - 8) * scale) * factor);
 * rdi acc, rsi codes, xmm0 scale, xmm1 factor, rdx n. */
ENTRY(mahe_fold_q4_avx2)
    fold_constants
    nibble_constants
    mov rcx, rdx
    shr rcx, 3
    jz LOCAL(q4_ones)
    .p2align 5
LOCAL(q4_eight):
    nibbles_8 ymm2, 0
    fold_8
    add rsi, 4
    dec rcx
    jnz LOCAL(q4_eight)
LOCAL(q4_ones):
    and edx, 7
    jz LOCAL(q4_done)
    last_nibbles LOCAL(q4_byte)
LOCAL(q4_one):
    nibble_1 xmm2
    fold_1
    dec edx
    jnz LOCAL(q4_one)
LOCAL(q4_done):
    vzeroupper
    ret
END(mahe_fold_q4_avx2)
#endif

#include "../note.h"
