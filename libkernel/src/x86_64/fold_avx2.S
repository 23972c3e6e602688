/* Fixed-point fold, AVX2. Replaces src/reference/fold.c. 16, then 4, then 1 element at a time.
 *
 * AVX2 has no float64 -> int64 conversion. With M = 1.5 * 2^52 and a product p, |p| <= 2^51:
 *   p + M lies in [2^52, 2^53]. In [2^52, 2^53) float64 holds exactly the integers, and 2^53 itself is one, so the
 *   addition rounds p + M to the nearest integer. M is an even integer: M + k is even if and only if k is, and the
 *   last bit of the significand of M + k is the parity of M + k. So ties go to even k: p + M rounds to M + rint(p).
 *   (A tie just below 2^53 goes to 2^53, the even one, as rint goes to 2^51; below 2^52 no value can fall.)
 *   In [2^52, 2^53] the bits of M + k, read as int64, are the bits of M plus k: one more unit in the last place for
 *   each integer, also where the exponent steps at 2^53. So bits(p + M) - bits(M) = rint(p), exactly.
 */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_fold_avx2(int64_t *acc, const float *delta, double scale, size_t n)
 *      for (i = 0; i < n; i++) acc[i] = acc[i] + (int64_t)rint((double)delta[i] * scale);
 * rdi acc, rsi delta, xmm0 scale, rdx n. r8, ymm5 = M (as bits and as float64). */
ENTRY(mahe_fold_avx2)
    vbroadcastsd ymm0, xmm0
    movabs r8, 0x4338000000000000
    vmovq xmm5, r8
    vpbroadcastq ymm5, xmm5
    mov rcx, rdx
    shr rcx, 4
    jz LOCAL(fold_fours)
    .p2align 5
LOCAL(fold_block):
    prefetcht0 byte ptr [rdi + AHEAD]
    prefetcht0 byte ptr [rdi + AHEAD + 64]
    prefetcht0 byte ptr [rsi + AHEAD]
    vcvtps2pd ymm1, xmmword ptr [rsi]
    vcvtps2pd ymm2, xmmword ptr [rsi + 16]
    vcvtps2pd ymm3, xmmword ptr [rsi + 32]
    vcvtps2pd ymm4, xmmword ptr [rsi + 48]
    vmulpd ymm1, ymm1, ymm0
    vmulpd ymm2, ymm2, ymm0
    vmulpd ymm3, ymm3, ymm0
    vmulpd ymm4, ymm4, ymm0
    vaddpd ymm1, ymm1, ymm5
    vaddpd ymm2, ymm2, ymm5
    vaddpd ymm3, ymm3, ymm5
    vaddpd ymm4, ymm4, ymm5
    vpsubq ymm1, ymm1, ymm5
    vpsubq ymm2, ymm2, ymm5
    vpsubq ymm3, ymm3, ymm5
    vpsubq ymm4, ymm4, ymm5
    vpaddq ymm1, ymm1, ymmword ptr [rdi]
    vpaddq ymm2, ymm2, ymmword ptr [rdi + 32]
    vpaddq ymm3, ymm3, ymmword ptr [rdi + 64]
    vpaddq ymm4, ymm4, ymmword ptr [rdi + 96]
    vmovdqu ymmword ptr [rdi], ymm1
    vmovdqu ymmword ptr [rdi + 32], ymm2
    vmovdqu ymmword ptr [rdi + 64], ymm3
    vmovdqu ymmword ptr [rdi + 96], ymm4
    add rsi, 64
    add rdi, 128
    dec rcx
    jnz LOCAL(fold_block)
LOCAL(fold_fours):
    mov ecx, edx
    shr ecx, 2
    and ecx, 3
    jz LOCAL(fold_ones)
LOCAL(fold_four):
    vcvtps2pd ymm1, xmmword ptr [rsi]
    vmulpd ymm1, ymm1, ymm0
    vaddpd ymm1, ymm1, ymm5
    vpsubq ymm1, ymm1, ymm5
    vpaddq ymm1, ymm1, ymmword ptr [rdi]
    vmovdqu ymmword ptr [rdi], ymm1
    add rsi, 16
    add rdi, 32
    dec ecx
    jnz LOCAL(fold_four)
LOCAL(fold_ones):
    and edx, 3
    jz LOCAL(fold_done)
    vxorps xmm2, xmm2, xmm2
LOCAL(fold_one):
    vcvtss2sd xmm1, xmm2, dword ptr [rsi]
    vmulsd xmm1, xmm1, xmm0
    vaddsd xmm1, xmm1, xmm5
    vmovq rax, xmm1
    sub rax, r8
    add qword ptr [rdi], rax
    add rsi, 4
    add rdi, 8
    dec edx
    jnz LOCAL(fold_one)
LOCAL(fold_done):
    vzeroupper
    ret
END(mahe_fold_avx2)
#endif

#include "../note.h"
