/* Outer momentum and Nesterov momentum, NEON. Replaces src/reference/outer.c. 16, then 4, then 1 element at a time.
 * All loads of a block come before its stores, so update == g is fine. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_momentum_neon(float *update, float *m, const float *g, float lr, float mu, size_t n)
 *      for (i = 0; i < n; i++) { m[i] = mu * m[i] + g[i]; update[i] = lr * m[i]; }
 * x0 update, x1 m, x2 g, v0.s[0] lr, v1.s[0] mu, x3 n, x4 turns left. v16-19 m, v20-23 g. */
ENTRY(mahe_momentum_neon)
    lsr x4, x3, #4
    cbz x4, LOCAL(momentum_fours)
    .p2align 4
LOCAL(momentum_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    ldp q20, q21, [x2]
    ldp q22, q23, [x2, #32]
    fmul v16.4s, v16.4s, v1.s[0]
    fmul v17.4s, v17.4s, v1.s[0]
    fmul v18.4s, v18.4s, v1.s[0]
    fmul v19.4s, v19.4s, v1.s[0]
    fadd v16.4s, v16.4s, v20.4s
    fadd v17.4s, v17.4s, v21.4s
    fadd v18.4s, v18.4s, v22.4s
    fadd v19.4s, v19.4s, v23.4s
    stp q16, q17, [x1]
    stp q18, q19, [x1, #32]
    fmul v16.4s, v16.4s, v0.s[0]
    fmul v17.4s, v17.4s, v0.s[0]
    fmul v18.4s, v18.4s, v0.s[0]
    fmul v19.4s, v19.4s, v0.s[0]
    stp q16, q17, [x0]
    stp q18, q19, [x0, #32]
    add x0, x0, #64
    add x1, x1, #64
    add x2, x2, #64
    subs x4, x4, #1
    b.ne LOCAL(momentum_block)
LOCAL(momentum_fours):
    ubfx x4, x3, #2, #2         // (n / 4) % 4
    cbz x4, LOCAL(momentum_ones)
LOCAL(momentum_four):
    ldr q16, [x1]
    ldr q20, [x2], #16
    fmul v16.4s, v16.4s, v1.s[0]
    fadd v16.4s, v16.4s, v20.4s
    str q16, [x1], #16
    fmul v16.4s, v16.4s, v0.s[0]
    str q16, [x0], #16
    subs x4, x4, #1
    b.ne LOCAL(momentum_four)
LOCAL(momentum_ones):
    ands x3, x3, #3
    b.eq LOCAL(momentum_done)
LOCAL(momentum_one):
    ldr s16, [x1]
    ldr s20, [x2], #4
    fmul s16, s16, s1
    fadd s16, s16, s20
    str s16, [x1], #4
    fmul s16, s16, s0
    str s16, [x0], #4
    subs x3, x3, #1
    b.ne LOCAL(momentum_one)
LOCAL(momentum_done):
    ret
END(mahe_momentum_neon)

/* void mahe_nesterov_neon(float *update, float *m, const float *g, float lr, float mu, size_t n)
 *      for (i = 0; i < n; i++) { m[i] = mu * m[i] + g[i]; update[i] = lr * (g[i] + mu * m[i]); }
 * Registers as above. */
ENTRY(mahe_nesterov_neon)
    lsr x4, x3, #4
    cbz x4, LOCAL(nesterov_fours)
    .p2align 4
LOCAL(nesterov_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    ldp q20, q21, [x2]
    ldp q22, q23, [x2, #32]
    fmul v16.4s, v16.4s, v1.s[0]
    fmul v17.4s, v17.4s, v1.s[0]
    fmul v18.4s, v18.4s, v1.s[0]
    fmul v19.4s, v19.4s, v1.s[0]
    fadd v16.4s, v16.4s, v20.4s
    fadd v17.4s, v17.4s, v21.4s
    fadd v18.4s, v18.4s, v22.4s
    fadd v19.4s, v19.4s, v23.4s
    stp q16, q17, [x1]
    stp q18, q19, [x1, #32]
    fmul v16.4s, v16.4s, v1.s[0]
    fmul v17.4s, v17.4s, v1.s[0]
    fmul v18.4s, v18.4s, v1.s[0]
    fmul v19.4s, v19.4s, v1.s[0]
    fadd v16.4s, v20.4s, v16.4s
    fadd v17.4s, v21.4s, v17.4s
    fadd v18.4s, v22.4s, v18.4s
    fadd v19.4s, v23.4s, v19.4s
    fmul v16.4s, v16.4s, v0.s[0]
    fmul v17.4s, v17.4s, v0.s[0]
    fmul v18.4s, v18.4s, v0.s[0]
    fmul v19.4s, v19.4s, v0.s[0]
    stp q16, q17, [x0]
    stp q18, q19, [x0, #32]
    add x0, x0, #64
    add x1, x1, #64
    add x2, x2, #64
    subs x4, x4, #1
    b.ne LOCAL(nesterov_block)
LOCAL(nesterov_fours):
    ubfx x4, x3, #2, #2
    cbz x4, LOCAL(nesterov_ones)
LOCAL(nesterov_four):
    ldr q16, [x1]
    ldr q20, [x2], #16
    fmul v16.4s, v16.4s, v1.s[0]
    fadd v16.4s, v16.4s, v20.4s
    str q16, [x1], #16
    fmul v16.4s, v16.4s, v1.s[0]
    fadd v16.4s, v20.4s, v16.4s
    fmul v16.4s, v16.4s, v0.s[0]
    str q16, [x0], #16
    subs x4, x4, #1
    b.ne LOCAL(nesterov_four)
LOCAL(nesterov_ones):
    ands x3, x3, #3
    b.eq LOCAL(nesterov_done)
LOCAL(nesterov_one):
    ldr s16, [x1]
    ldr s20, [x2], #4
    fmul s16, s16, s1
    fadd s16, s16, s20
    str s16, [x1], #4
    fmul s16, s16, s1
    fadd s16, s20, s16
    fmul s16, s16, s0
    str s16, [x0], #4
    subs x3, x3, #1
    b.ne LOCAL(nesterov_one)
LOCAL(nesterov_done):
    ret
END(mahe_nesterov_neon)
#endif

#include "../note.h"
