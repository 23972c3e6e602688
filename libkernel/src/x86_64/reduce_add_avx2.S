/* Weighted sum and SGD step, AVX2. Replaces src/reference/reduce_add.c. 32, then 8, then 1 element at a time. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_sgd_update_avx2(float *params, const float *grad, float lr, size_t n)
 *      params[i] = params[i] - lr * grad[i], computed as params[i] + (-lr) * grad[i]: the same bits (see the C).
 * Flips the sign of lr and falls through. */
ENTRY(mahe_sgd_update_avx2)
    vpcmpeqd xmm1, xmm1, xmm1
    vpslld xmm1, xmm1, 31
    vxorps xmm0, xmm0, xmm1
END(mahe_sgd_update_avx2)

/* void mahe_reduce_add_avx2(float *dst, const float *src, float weight, size_t n)
 *      for (i = 0; i < n; i++) dst[i] = dst[i] + weight * src[i];
 * rdi dst, rsi src, xmm0 weight, rdx n. All loads of a block come before its stores: dst == src is fine. */
ENTRY(mahe_reduce_add_avx2)
    vbroadcastss ymm0, xmm0
    mov rcx, rdx
    shr rcx, 5
    jz LOCAL(reduce_eights)
    .p2align 5
LOCAL(reduce_block):
    prefetcht0 byte ptr [rsi + AHEAD]
    prefetcht0 byte ptr [rsi + AHEAD + 64]
    prefetcht0 byte ptr [rdi + AHEAD]
    prefetcht0 byte ptr [rdi + AHEAD + 64]
    vmulps ymm1, ymm0, ymmword ptr [rsi]
    vmulps ymm2, ymm0, ymmword ptr [rsi + 32]
    vmulps ymm3, ymm0, ymmword ptr [rsi + 64]
    vmulps ymm4, ymm0, ymmword ptr [rsi + 96]
    vaddps ymm1, ymm1, ymmword ptr [rdi]
    vaddps ymm2, ymm2, ymmword ptr [rdi + 32]
    vaddps ymm3, ymm3, ymmword ptr [rdi + 64]
    vaddps ymm4, ymm4, ymmword ptr [rdi + 96]
    vmovups ymmword ptr [rdi], ymm1
    vmovups ymmword ptr [rdi + 32], ymm2
    vmovups ymmword ptr [rdi + 64], ymm3
    vmovups ymmword ptr [rdi + 96], ymm4
    add rsi, 128
    add rdi, 128
    dec rcx
    jnz LOCAL(reduce_block)
LOCAL(reduce_eights):
    mov ecx, edx
    shr ecx, 3
    and ecx, 3
    jz LOCAL(reduce_ones)
LOCAL(reduce_eight):
    vmulps ymm1, ymm0, ymmword ptr [rsi]
    vaddps ymm1, ymm1, ymmword ptr [rdi]
    vmovups ymmword ptr [rdi], ymm1
    add rsi, 32
    add rdi, 32
    dec ecx
    jnz LOCAL(reduce_eight)
LOCAL(reduce_ones):
    and edx, 7
    jz LOCAL(reduce_done)
LOCAL(reduce_one):
    vmulss xmm1, xmm0, dword ptr [rsi]
    vaddss xmm1, xmm1, dword ptr [rdi]
    vmovss dword ptr [rdi], xmm1
    add rsi, 4
    add rdi, 4
    dec edx
    jnz LOCAL(reduce_one)
LOCAL(reduce_done):
    vzeroupper
    ret
END(mahe_reduce_add_avx2)
#endif

#include "../note.h"
