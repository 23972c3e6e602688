/* One-pass statistics, NEON: whole blocks of 16. Replaces the loop of src/reference/stats.c; the rest is in
 * stats_entry.c. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_stats_blocks_neon(const float *x, size_t blocks, struct mahe_stats_state *state)
 *      for (i = 0; i < 16 * blocks; i++) {
 *          bits = x[i] as uint32 & 0x7fffffff;
 *          if (bits >= 0x7f800000) bits = 0; else state->finite[i % 8]++;
 *          state->absmax[i % 8] = max(state->absmax[i % 8], bits);
 *          state->lane[i % 16] += (double)(bits as float) * (double)(bits as float);
 *      }
 * x0 x, x1 blocks, x2 state (lanes at 0, absmax at 128, finite at 160). A masked entry adds +0 to a lane that is never
 * -0: nothing changes. v16-23 lanes, v24-25 absmax, v26-27 finite, v28 0x7f800000, v0-7 and v29-31 work. */
ENTRY(mahe_stats_blocks_neon)
    ldp q16, q17, [x2]
    ldp q18, q19, [x2, #32]
    ldp q20, q21, [x2, #64]
    ldp q22, q23, [x2, #96]
    ldp q24, q25, [x2, #128]
    ldp q26, q27, [x2, #160]
    mov w3, #0x7f800000
    dup v28.4s, w3
    cbz x1, LOCAL(stats_done)
    .p2align 4
LOCAL(stats_block):
    ldp q0, q1, [x0]
    ldp q2, q3, [x0, #32]
    bic v0.4s, #0x80, lsl #24   // clears the sign
    bic v1.4s, #0x80, lsl #24
    bic v2.4s, #0x80, lsl #24
    bic v3.4s, #0x80, lsl #24
    cmhi v4.4s, v28.4s, v0.4s   // finite: all ones, that is -1
    cmhi v5.4s, v28.4s, v1.4s
    cmhi v6.4s, v28.4s, v2.4s
    cmhi v7.4s, v28.4s, v3.4s
    and v0.16b, v0.16b, v4.16b
    and v1.16b, v1.16b, v5.16b
    and v2.16b, v2.16b, v6.16b
    and v3.16b, v3.16b, v7.16b
    sub v26.4s, v26.4s, v4.4s
    sub v27.4s, v27.4s, v5.4s
    umax v24.4s, v24.4s, v0.4s
    umax v25.4s, v25.4s, v1.4s
    sub v26.4s, v26.4s, v6.4s
    sub v27.4s, v27.4s, v7.4s
    umax v24.4s, v24.4s, v2.4s
    umax v25.4s, v25.4s, v3.4s
    fcvtl v4.2d, v0.2s
    fcvtl2 v5.2d, v0.4s
    fcvtl v6.2d, v1.2s
    fcvtl2 v7.2d, v1.4s
    fcvtl v29.2d, v2.2s
    fcvtl2 v30.2d, v2.4s
    fcvtl v31.2d, v3.2s
    fcvtl2 v0.2d, v3.4s
    fmul v4.2d, v4.2d, v4.2d
    fmul v5.2d, v5.2d, v5.2d
    fmul v6.2d, v6.2d, v6.2d
    fmul v7.2d, v7.2d, v7.2d
    fmul v29.2d, v29.2d, v29.2d
    fmul v30.2d, v30.2d, v30.2d
    fmul v31.2d, v31.2d, v31.2d
    fmul v0.2d, v0.2d, v0.2d
    fadd v16.2d, v16.2d, v4.2d
    fadd v17.2d, v17.2d, v5.2d
    fadd v18.2d, v18.2d, v6.2d
    fadd v19.2d, v19.2d, v7.2d
    fadd v20.2d, v20.2d, v29.2d
    fadd v21.2d, v21.2d, v30.2d
    fadd v22.2d, v22.2d, v31.2d
    fadd v23.2d, v23.2d, v0.2d
    add x0, x0, #64
    subs x1, x1, #1
    b.ne LOCAL(stats_block)
LOCAL(stats_done):
    stp q16, q17, [x2]
    stp q18, q19, [x2, #32]
    stp q20, q21, [x2, #64]
    stp q22, q23, [x2, #96]
    stp q24, q25, [x2, #128]
    stp q26, q27, [x2, #160]
    ret
END(mahe_stats_blocks_neon)
#endif

#include "../note.h"
