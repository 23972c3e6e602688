/* bfloat16 from and to float32, NEON. Replaces src/reference/bf16.c. 16, then 4, then 1 element at a time. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_bf16_from_f32_neon(uint16_t *dst, const float *src, size_t n)
 *      for (i = 0; i < n; i++) {
 *          bits = src[i] as uint32;
 *          if (src[i] is a NaN) dst[i] = (bits | 0x400000) >> 16;
 *          else dst[i] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
 *      }
 * (bits << 15) >> 31 is bits >> 16 & 1: a shift, then one that adds. Only a NaN differs from itself.
 * x0 dst, x1 src, x2 n, x3 turns left. v0 0x7fff; v16-19 bits, v4-7 the last place kept, v20-23 sums, v24-27 not a NaN.
 * Tail: w4 bits, w5 sum, w6 0x7fff, w7 0xff000000 (what an infinity is without its sign), w8 the quiet NaN. */
ENTRY(mahe_bf16_from_f32_neon)
    movi v0.4s, #0x7f, msl #8   // 0x7fff
    lsr x3, x2, #4
    cbz x3, LOCAL(to_bf16_fours)
    .p2align 4
LOCAL(to_bf16_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    shl v4.4s, v16.4s, #15
    shl v5.4s, v17.4s, #15
    shl v6.4s, v18.4s, #15
    shl v7.4s, v19.4s, #15
    add v20.4s, v16.4s, v0.4s
    add v21.4s, v17.4s, v0.4s
    add v22.4s, v18.4s, v0.4s
    add v23.4s, v19.4s, v0.4s
    fcmeq v24.4s, v16.4s, v16.4s
    fcmeq v25.4s, v17.4s, v17.4s
    fcmeq v26.4s, v18.4s, v18.4s
    fcmeq v27.4s, v19.4s, v19.4s
    usra v20.4s, v4.4s, #31
    usra v21.4s, v5.4s, #31
    usra v22.4s, v6.4s, #31
    usra v23.4s, v7.4s, #31
    orr v16.4s, #0x40, lsl #16  // a NaN becomes quiet
    orr v17.4s, #0x40, lsl #16
    orr v18.4s, #0x40, lsl #16
    orr v19.4s, #0x40, lsl #16
    bif v20.16b, v16.16b, v24.16b
    bif v21.16b, v17.16b, v25.16b
    bif v22.16b, v18.16b, v26.16b
    bif v23.16b, v19.16b, v27.16b
    uzp2 v20.8h, v20.8h, v21.8h // the upper halves of both
    uzp2 v22.8h, v22.8h, v23.8h
    stp q20, q22, [x0], #32
    add x1, x1, #64
    subs x3, x3, #1
    b.ne LOCAL(to_bf16_block)
LOCAL(to_bf16_fours):
    ubfx x3, x2, #2, #2         // (n / 4) % 4
    cbz x3, LOCAL(to_bf16_ones)
LOCAL(to_bf16_four):
    ldr q16, [x1], #16
    shl v4.4s, v16.4s, #15
    add v20.4s, v16.4s, v0.4s
    fcmeq v24.4s, v16.4s, v16.4s
    usra v20.4s, v4.4s, #31
    orr v16.4s, #0x40, lsl #16
    bif v20.16b, v16.16b, v24.16b
    shrn v20.4h, v20.4s, #16
    str d20, [x0], #8
    subs x3, x3, #1
    b.ne LOCAL(to_bf16_four)
LOCAL(to_bf16_ones):
    ands x2, x2, #3
    b.eq LOCAL(to_bf16_done)
    mov w6, #0x7fff
    mov w7, #0xff000000
LOCAL(to_bf16_one):
    ldr w4, [x1], #4
    ubfx w5, w4, #16, #1
    add w5, w5, w4
    add w5, w5, w6
    orr w8, w4, #0x400000
    cmp w7, w4, lsl #1          // 0xff000000 < bits << 1: a NaN
    csel w5, w8, w5, lo
    lsr w5, w5, #16
    strh w5, [x0], #2
    subs x2, x2, #1
    b.ne LOCAL(to_bf16_one)
LOCAL(to_bf16_done):
    ret
END(mahe_bf16_from_f32_neon)

/* void mahe_f32_from_bf16_neon(float *dst, const uint16_t *src, size_t n)
 *      for (i = 0; i < n; i++) dst[i] = (uint32_t)src[i] << 16 as float;
 * x0 dst, x1 src, x2 n, x3 turns left. */
ENTRY(mahe_f32_from_bf16_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(of_bf16_fours)
    .p2align 4
LOCAL(of_bf16_block):
    ldp q16, q17, [x1], #32
    shll v20.4s, v16.4h, #16
    shll2 v21.4s, v16.8h, #16
    shll v22.4s, v17.4h, #16
    shll2 v23.4s, v17.8h, #16
    stp q20, q21, [x0]
    stp q22, q23, [x0, #32]
    add x0, x0, #64
    subs x3, x3, #1
    b.ne LOCAL(of_bf16_block)
LOCAL(of_bf16_fours):
    ubfx x3, x2, #2, #2
    cbz x3, LOCAL(of_bf16_ones)
LOCAL(of_bf16_four):
    ldr d16, [x1], #8
    shll v20.4s, v16.4h, #16
    str q20, [x0], #16
    subs x3, x3, #1
    b.ne LOCAL(of_bf16_four)
LOCAL(of_bf16_ones):
    ands x2, x2, #3
    b.eq LOCAL(of_bf16_done)
LOCAL(of_bf16_one):
    ldrh w4, [x1], #2
    lsl w4, w4, #16
    str w4, [x0], #4
    subs x2, x2, #1
    b.ne LOCAL(of_bf16_one)
LOCAL(of_bf16_done):
    ret
END(mahe_f32_from_bf16_neon)
#endif

#include "../note.h"
