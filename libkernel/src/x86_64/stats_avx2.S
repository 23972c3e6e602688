/* One-pass statistics, AVX2: whole blocks of 16 finite entries. Replaces the loop of src/reference/stats.c; the rest is
 * in stats_entry.c. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_stats_blocks_avx2(const float *x, size_t blocks, struct mahe_stats_state *state)
 *      for (i = 0; i < 16 * blocks; i++) {
 *          state->absmax[i % 8] = max(state->absmax[i % 8], x[i] as uint32 & 0x7fffffff);
 *          state->lane[i % 16] += (double)x[i] * (double)x[i];
 *      }
 * An entry that is not finite spoils its lane, but is seen in absmax: stats_entry.c then starts again.
 * rdi x, rsi blocks, rdx state (lanes at 0, absmax at 128). ymm0-3 lanes, ymm4 absmax, ymm5 0x7fffffff. Each entry is
 * loaded twice: a conversion from memory, not from a register, needs no shuffle. */
ENTRY(mahe_stats_blocks_avx2)
    vmovupd ymm0, ymmword ptr [rdx]
    vmovupd ymm1, ymmword ptr [rdx + 32]
    vmovupd ymm2, ymmword ptr [rdx + 64]
    vmovupd ymm3, ymmword ptr [rdx + 96]
    vmovdqu ymm4, ymmword ptr [rdx + 128]
    vpcmpeqd ymm5, ymm5, ymm5
    vpsrld ymm5, ymm5, 1
    test rsi, rsi
    jz LOCAL(stats_done)
    .p2align 5
LOCAL(stats_block):
    prefetcht0 byte ptr [rdi + AHEAD_ONE]
    vcvtps2pd ymm6, xmmword ptr [rdi]
    vcvtps2pd ymm7, xmmword ptr [rdi + 16]
    vcvtps2pd ymm8, xmmword ptr [rdi + 32]
    vcvtps2pd ymm9, xmmword ptr [rdi + 48]
    vpand ymm10, ymm5, ymmword ptr [rdi]
    vpand ymm11, ymm5, ymmword ptr [rdi + 32]
    vmulpd ymm6, ymm6, ymm6
    vmulpd ymm7, ymm7, ymm7
    vmulpd ymm8, ymm8, ymm8
    vmulpd ymm9, ymm9, ymm9
    vpmaxud ymm4, ymm4, ymm10
    vpmaxud ymm4, ymm4, ymm11
    vaddpd ymm0, ymm0, ymm6
    vaddpd ymm1, ymm1, ymm7
    vaddpd ymm2, ymm2, ymm8
    vaddpd ymm3, ymm3, ymm9
    add rdi, 64
    dec rsi
    jnz LOCAL(stats_block)
LOCAL(stats_done):
    vmovupd ymmword ptr [rdx], ymm0
    vmovupd ymmword ptr [rdx + 32], ymm1
    vmovupd ymmword ptr [rdx + 64], ymm2
    vmovupd ymmword ptr [rdx + 96], ymm3
    vmovdqu ymmword ptr [rdx + 128], ymm4
    vzeroupper
    ret
END(mahe_stats_blocks_avx2)
#endif

#include "../note.h"
