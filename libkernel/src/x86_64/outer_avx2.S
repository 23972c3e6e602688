/* Outer momentum and Nesterov momentum, AVX2. Replaces src/reference/outer.c. 16, then 8, then 1 element at a time.
 * All loads of a block come before its stores: update == g is fine. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_momentum_avx2(float *update, float *m, const float *g, float lr, float mu, size_t n)
 *      for (i = 0; i < n; i++) {
 *          m[i] = mu * m[i] + g[i];
 *          update[i] = lr * m[i];
 *      }
 * rdi update, rsi m, rdx g, xmm0 lr, xmm1 mu, rcx n. ymm2, ymm3 the new m; ymm4, ymm5 update. */
ENTRY(mahe_momentum_avx2)
    vbroadcastss ymm0, xmm0
    vbroadcastss ymm1, xmm1
    mov rax, rcx
    shr rax, 4
    jz LOCAL(momentum_eight)
    .p2align 5
LOCAL(momentum_block):
    prefetcht0 byte ptr [rdi + AHEAD]
    prefetcht0 byte ptr [rsi + AHEAD]
    prefetcht0 byte ptr [rdx + AHEAD]
    vmulps ymm2, ymm1, ymmword ptr [rsi]
    vmulps ymm3, ymm1, ymmword ptr [rsi + 32]
    vaddps ymm2, ymm2, ymmword ptr [rdx]
    vaddps ymm3, ymm3, ymmword ptr [rdx + 32]
    vmulps ymm4, ymm0, ymm2
    vmulps ymm5, ymm0, ymm3
    vmovups ymmword ptr [rsi], ymm2
    vmovups ymmword ptr [rsi + 32], ymm3
    vmovups ymmword ptr [rdi], ymm4
    vmovups ymmword ptr [rdi + 32], ymm5
    add rsi, 64
    add rdx, 64
    add rdi, 64
    dec rax
    jnz LOCAL(momentum_block)
LOCAL(momentum_eight):
    test ecx, 8
    jz LOCAL(momentum_ones)
    vmulps ymm2, ymm1, ymmword ptr [rsi]
    vaddps ymm2, ymm2, ymmword ptr [rdx]
    vmulps ymm4, ymm0, ymm2
    vmovups ymmword ptr [rsi], ymm2
    vmovups ymmword ptr [rdi], ymm4
    add rsi, 32
    add rdx, 32
    add rdi, 32
LOCAL(momentum_ones):
    and ecx, 7
    jz LOCAL(momentum_done)
LOCAL(momentum_one):
    vmulss xmm2, xmm1, dword ptr [rsi]
    vaddss xmm2, xmm2, dword ptr [rdx]
    vmulss xmm4, xmm0, xmm2
    vmovss dword ptr [rsi], xmm2
    vmovss dword ptr [rdi], xmm4
    add rsi, 4
    add rdx, 4
    add rdi, 4
    dec ecx
    jnz LOCAL(momentum_one)
LOCAL(momentum_done):
    vzeroupper
    ret
END(mahe_momentum_avx2)

/* void mahe_nesterov_avx2(float *update, float *m, const float *g, float lr, float mu, size_t n)
 *      for (i = 0; i < n; i++) {
 *          m[i] = mu * m[i] + g[i];
 *          update[i] = lr * (g[i] + mu * m[i]);
 *      }
 * rdi update, rsi m, rdx g, xmm0 lr, xmm1 mu, rcx n. ymm2, ymm3 the new m; ymm4, ymm5 update; ymm6, ymm7 g. */
ENTRY(mahe_nesterov_avx2)
    vbroadcastss ymm0, xmm0
    vbroadcastss ymm1, xmm1
    mov rax, rcx
    shr rax, 4
    jz LOCAL(nesterov_eight)
    .p2align 5
LOCAL(nesterov_block):
    prefetcht0 byte ptr [rdi + AHEAD]
    prefetcht0 byte ptr [rsi + AHEAD]
    prefetcht0 byte ptr [rdx + AHEAD]
    vmovups ymm6, ymmword ptr [rdx]
    vmovups ymm7, ymmword ptr [rdx + 32]
    vmulps ymm2, ymm1, ymmword ptr [rsi]
    vmulps ymm3, ymm1, ymmword ptr [rsi + 32]
    vaddps ymm2, ymm2, ymm6
    vaddps ymm3, ymm3, ymm7
    vmulps ymm4, ymm1, ymm2
    vmulps ymm5, ymm1, ymm3
    vaddps ymm4, ymm6, ymm4
    vaddps ymm5, ymm7, ymm5
    vmulps ymm4, ymm0, ymm4
    vmulps ymm5, ymm0, ymm5
    vmovups ymmword ptr [rsi], ymm2
    vmovups ymmword ptr [rsi + 32], ymm3
    vmovups ymmword ptr [rdi], ymm4
    vmovups ymmword ptr [rdi + 32], ymm5
    add rsi, 64
    add rdx, 64
    add rdi, 64
    dec rax
    jnz LOCAL(nesterov_block)
LOCAL(nesterov_eight):
    test ecx, 8
    jz LOCAL(nesterov_ones)
    vmovups ymm6, ymmword ptr [rdx]
    vmulps ymm2, ymm1, ymmword ptr [rsi]
    vaddps ymm2, ymm2, ymm6
    vmulps ymm4, ymm1, ymm2
    vaddps ymm4, ymm6, ymm4
    vmulps ymm4, ymm0, ymm4
    vmovups ymmword ptr [rsi], ymm2
    vmovups ymmword ptr [rdi], ymm4
    add rsi, 32
    add rdx, 32
    add rdi, 32
LOCAL(nesterov_ones):
    and ecx, 7
    jz LOCAL(nesterov_done)
LOCAL(nesterov_one):
    vmovss xmm6, dword ptr [rdx]
    vmulss xmm2, xmm1, dword ptr [rsi]
    vaddss xmm2, xmm2, xmm6
    vmulss xmm4, xmm1, xmm2
    vaddss xmm4, xmm6, xmm4
    vmulss xmm4, xmm0, xmm4
    vmovss dword ptr [rsi], xmm2
    vmovss dword ptr [rdi], xmm4
    add rsi, 4
    add rdx, 4
    add rdi, 4
    dec ecx
    jnz LOCAL(nesterov_one)
LOCAL(nesterov_done):
    vzeroupper
    ret
END(mahe_nesterov_avx2)
#endif

#include "../note.h"
