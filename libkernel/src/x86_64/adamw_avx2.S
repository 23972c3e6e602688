/* One AdamW step, AVX2. Replaces src/reference/adamw.c. 8, then 1 element at a time. It waits for the division and the
 * square root (the exact instructions: an approximation would have other bits) or for the memory, so a longer block
 * gains nothing. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_adamw_avx2(float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n)
 *      for (i = 0; i < n; i++) {
 *          m[i] = step->beta1 * m[i] + step->rest1 * g[i];
 *          v[i] = step->beta2 * v[i] + step->rest2 * (g[i] * g[i]);
 *          below = sqrtf(v[i] * step->unbias2) + step->eps;
 *          direction = m[i] * step->unbias1 / below + params[i] * step->weight_decay;
 *          params[i] = params[i] - step->lr * direction;
 *      }
 * rdi params, rsi m, rdx v, rcx g, r8 step (nine floats in the order of the header), r9 n.
 * ymm0 lr, ymm1 beta1, ymm2 rest1, ymm3 beta2, ymm4 rest2, ymm5 unbias1, ymm6 unbias2, ymm7 eps, ymm8 weight_decay;
 * ymm9 g, then g * g; ymm10 the new m; ymm11 the new v; ymm12 params; ymm13 below; ymm14 direction; ymm15 products.
 * All loads come before the first store: large arrays often lie a multiple of 4 KiB apart, and a load seems to depend
 * on an earlier store whose address has the same lower 12 bits. */
ENTRY(mahe_adamw_avx2)
    vbroadcastss ymm0, dword ptr [r8]
    vbroadcastss ymm1, dword ptr [r8 + 4]
    vbroadcastss ymm2, dword ptr [r8 + 8]
    vbroadcastss ymm3, dword ptr [r8 + 12]
    vbroadcastss ymm4, dword ptr [r8 + 16]
    vbroadcastss ymm5, dword ptr [r8 + 20]
    vbroadcastss ymm6, dword ptr [r8 + 24]
    vbroadcastss ymm7, dword ptr [r8 + 28]
    vbroadcastss ymm8, dword ptr [r8 + 32]
    mov rax, r9
    shr rax, 3
    jz LOCAL(adamw_ones)
    .p2align 5
LOCAL(adamw_eight):
    prefetcht0 byte ptr [rdi + AHEAD]
    prefetcht0 byte ptr [rsi + AHEAD]
    prefetcht0 byte ptr [rdx + AHEAD]
    prefetcht0 byte ptr [rcx + AHEAD]
    vmovups ymm9, ymmword ptr [rcx]
    vmulps ymm10, ymm1, ymmword ptr [rsi]
    vmulps ymm11, ymm3, ymmword ptr [rdx]
    vmovups ymm12, ymmword ptr [rdi]
    vmulps ymm15, ymm2, ymm9
    vaddps ymm10, ymm10, ymm15
    vmulps ymm9, ymm9, ymm9
    vmulps ymm9, ymm4, ymm9
    vaddps ymm11, ymm11, ymm9
    vmulps ymm13, ymm11, ymm6
    vsqrtps ymm13, ymm13
    vaddps ymm13, ymm13, ymm7
    vmulps ymm14, ymm10, ymm5
    vdivps ymm14, ymm14, ymm13
    vmulps ymm15, ymm12, ymm8
    vaddps ymm14, ymm14, ymm15
    vmulps ymm14, ymm0, ymm14
    vsubps ymm12, ymm12, ymm14
    vmovups ymmword ptr [rsi], ymm10
    vmovups ymmword ptr [rdx], ymm11
    vmovups ymmword ptr [rdi], ymm12
    add rcx, 32
    add rsi, 32
    add rdx, 32
    add rdi, 32
    dec rax
    jnz LOCAL(adamw_eight)
LOCAL(adamw_ones):
    and r9d, 7
    jz LOCAL(adamw_done)
LOCAL(adamw_one):
    vmovss xmm9, dword ptr [rcx]
    vmulss xmm10, xmm1, dword ptr [rsi]
    vmulss xmm11, xmm3, dword ptr [rdx]
    vmovss xmm12, dword ptr [rdi]
    vmulss xmm15, xmm2, xmm9
    vaddss xmm10, xmm10, xmm15
    vmulss xmm9, xmm9, xmm9
    vmulss xmm9, xmm4, xmm9
    vaddss xmm11, xmm11, xmm9
    vmulss xmm13, xmm11, xmm6
    vsqrtss xmm13, xmm13, xmm13
    vaddss xmm13, xmm13, xmm7
    vmulss xmm14, xmm10, xmm5
    vdivss xmm14, xmm14, xmm13
    vmulss xmm15, xmm12, xmm8
    vaddss xmm14, xmm14, xmm15
    vmulss xmm14, xmm0, xmm14
    vsubss xmm12, xmm12, xmm14
    vmovss dword ptr [rsi], xmm10
    vmovss dword ptr [rdx], xmm11
    vmovss dword ptr [rdi], xmm12
    add rcx, 4
    add rsi, 4
    add rdx, 4
    add rdi, 4
    dec r9d
    jnz LOCAL(adamw_one)
LOCAL(adamw_done):
    vzeroupper
    ret
END(mahe_adamw_avx2)
#endif

#include "../note.h"
