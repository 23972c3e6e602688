/* One-pass statistics, AVX2: whole blocks of 16. Replaces the loop of src/reference/stats.c; the rest is in
 * stats_entry.c. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_stats_blocks_avx2(const float *x, size_t blocks, struct mahe_stats_state *state)
 *      for (i = 0; i < 16 * blocks; i++) {
 *          bits = x[i] as uint32 & 0x7fffffff;
 *          if (bits >= 0x7f800000) bits = 0; else state->finite[i % 8]++;
 *          state->absmax[i % 8] = max(state->absmax[i % 8], bits);
 *          state->lane[i % 16] += (double)(bits as float) * (double)(bits as float);
 *      }
 * rdi x, rsi blocks, rdx state (lanes at 0, absmax at 128, finite at 160). A masked entry adds +0 to a lane that is
 * never -0: nothing changes. ymm0-3 lanes, ymm4 absmax, ymm5 finite, ymm6 0x7fffffff, ymm7 0x7f800000. */
ENTRY(mahe_stats_blocks_avx2)
    vmovupd ymm0, ymmword ptr [rdx]
    vmovupd ymm1, ymmword ptr [rdx + 32]
    vmovupd ymm2, ymmword ptr [rdx + 64]
    vmovupd ymm3, ymmword ptr [rdx + 96]
    vmovdqu ymm4, ymmword ptr [rdx + 128]
    vmovdqu ymm5, ymmword ptr [rdx + 160]
    vpcmpeqd ymm6, ymm6, ymm6
    vpsrld ymm6, ymm6, 1
    mov eax, 0x7f800000
    vmovd xmm7, eax
    vpbroadcastd ymm7, xmm7
    test rsi, rsi
    jz LOCAL(stats_done)
    .p2align 5
LOCAL(stats_block):
    vpand ymm8, ymm6, ymmword ptr [rdi]
    vpand ymm9, ymm6, ymmword ptr [rdi + 32]
    vpcmpgtd ymm10, ymm7, ymm8
    vpcmpgtd ymm11, ymm7, ymm9
    vpsubd ymm5, ymm5, ymm10
    vpsubd ymm5, ymm5, ymm11
    vpand ymm8, ymm8, ymm10
    vpand ymm9, ymm9, ymm11
    vpmaxud ymm4, ymm4, ymm8
    vpmaxud ymm4, ymm4, ymm9
    vextracti128 xmm10, ymm8, 1
    vextracti128 xmm11, ymm9, 1
    vcvtps2pd ymm12, xmm8
    vcvtps2pd ymm13, xmm10
    vcvtps2pd ymm14, xmm9
    vcvtps2pd ymm15, xmm11
    vmulpd ymm12, ymm12, ymm12
    vmulpd ymm13, ymm13, ymm13
    vmulpd ymm14, ymm14, ymm14
    vmulpd ymm15, ymm15, ymm15
    vaddpd ymm0, ymm0, ymm12
    vaddpd ymm1, ymm1, ymm13
    vaddpd ymm2, ymm2, ymm14
    vaddpd ymm3, ymm3, ymm15
    add rdi, 64
    dec rsi
    jnz LOCAL(stats_block)
LOCAL(stats_done):
    vmovupd ymmword ptr [rdx], ymm0
    vmovupd ymmword ptr [rdx + 32], ymm1
    vmovupd ymmword ptr [rdx + 64], ymm2
    vmovupd ymmword ptr [rdx + 96], ymm3
    vmovdqu ymmword ptr [rdx + 128], ymm4
    vmovdqu ymmword ptr [rdx + 160], ymm5
    vzeroupper
    ret
END(mahe_stats_blocks_avx2)
#endif

#include "../note.h"
