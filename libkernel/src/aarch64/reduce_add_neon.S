/* Weighted sum and SGD step, NEON. Replaces src/reference/reduce_add.c. 16, then 4, then 1 element at a time. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_sgd_update_neon(float *params, const float *grad, float lr, size_t n)
 *      params[i] = params[i] - lr * grad[i], computed as params[i] + (-lr) * grad[i]: the same bits (see the C).
 * Flips the sign of lr and falls through. */
ENTRY(mahe_sgd_update_neon)
    fneg s0, s0
END(mahe_sgd_update_neon)

/* void mahe_reduce_add_neon(float *dst, const float *src, float weight, size_t n)
 *      for (i = 0; i < n; i++) dst[i] = dst[i] + weight * src[i];
 * x0 dst, x1 src, v0.s[0] weight, x2 n, x3 turns left. All loads of a block come before its stores: dst == src is
 * fine. */
ENTRY(mahe_reduce_add_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(reduce_fours)
    .p2align 4
LOCAL(reduce_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    ldp q20, q21, [x0]
    ldp q22, q23, [x0, #32]
    fmul v16.4s, v16.4s, v0.s[0]
    fmul v17.4s, v17.4s, v0.s[0]
    fmul v18.4s, v18.4s, v0.s[0]
    fmul v19.4s, v19.4s, v0.s[0]
    fadd v20.4s, v20.4s, v16.4s
    fadd v21.4s, v21.4s, v17.4s
    fadd v22.4s, v22.4s, v18.4s
    fadd v23.4s, v23.4s, v19.4s
    stp q20, q21, [x0]
    stp q22, q23, [x0, #32]
    add x1, x1, #64
    add x0, x0, #64
    subs x3, x3, #1
    b.ne LOCAL(reduce_block)
LOCAL(reduce_fours):
    ubfx x3, x2, #2, #2         // (n / 4) % 4
    cbz x3, LOCAL(reduce_ones)
LOCAL(reduce_four):
    ldr q16, [x1], #16
    ldr q20, [x0]
    fmul v16.4s, v16.4s, v0.s[0]
    fadd v20.4s, v20.4s, v16.4s
    str q20, [x0], #16
    subs x3, x3, #1
    b.ne LOCAL(reduce_four)
LOCAL(reduce_ones):
    ands x2, x2, #3
    b.eq LOCAL(reduce_done)
LOCAL(reduce_one):
    ldr s16, [x1], #4
    ldr s20, [x0]
    fmul s16, s16, s0
    fadd s20, s20, s16
    str s20, [x0], #4
    subs x2, x2, #1
    b.ne LOCAL(reduce_one)
LOCAL(reduce_done):
    ret
END(mahe_reduce_add_neon)
#endif

#include "../note.h"
