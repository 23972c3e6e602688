/* One AdamW step, NEON. Replaces src/reference/adamw.c. 16, then 4, then 1 element at a time. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_adamw_neon(float *params, float *m, float *v, const float *g, const mahe_adamw *step, size_t n)
 *      for (i = 0; i < n; i++) {
 *          m[i] = beta1 * m[i] + rest1 * g[i];
 *          v[i] = beta2 * v[i] + rest2 * (g[i] * g[i]);
 *          d = (m[i] * unbias1) / (sqrt(v[i] * unbias2) + eps) + params[i] * weight_decay;
 *          params[i] = params[i] - lr * d;
 *      }
 * x0 params, x1 m, x2 v, x3 g, x4 step (nine floats, in the order of v0-v2 here), x5 n, x6 turns left.
 * v0 lr, beta1, rest1, beta2; v1 rest2, unbias1, unbias2, eps; v2.s[0] weight_decay; v3 eps in every lane.
 * v16-19 m, then d; v20-23 v; v24-27 g; v28-31 params; v4-7 work. */
ENTRY(mahe_adamw_neon)
    ldp q0, q1, [x4]
    ldr s2, [x4, #32]
    dup v3.4s, v1.s[3]
    lsr x6, x5, #4
    cbz x6, LOCAL(adamw_fours)
    .p2align 4
LOCAL(adamw_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    ldp q24, q25, [x3]
    ldp q26, q27, [x3, #32]
    ldp q20, q21, [x2]
    ldp q22, q23, [x2, #32]
    ldp q28, q29, [x0]
    ldp q30, q31, [x0, #32]
    fmul v4.4s, v24.4s, v24.4s      // g * g
    fmul v5.4s, v25.4s, v25.4s
    fmul v6.4s, v26.4s, v26.4s
    fmul v7.4s, v27.4s, v27.4s
    fmul v16.4s, v16.4s, v0.s[1]    // m = beta1 * m + rest1 * g
    fmul v17.4s, v17.4s, v0.s[1]
    fmul v18.4s, v18.4s, v0.s[1]
    fmul v19.4s, v19.4s, v0.s[1]
    fmul v24.4s, v24.4s, v0.s[2]
    fmul v25.4s, v25.4s, v0.s[2]
    fmul v26.4s, v26.4s, v0.s[2]
    fmul v27.4s, v27.4s, v0.s[2]
    fmul v20.4s, v20.4s, v0.s[3]    // v = beta2 * v + rest2 * (g * g)
    fmul v21.4s, v21.4s, v0.s[3]
    fmul v22.4s, v22.4s, v0.s[3]
    fmul v23.4s, v23.4s, v0.s[3]
    fmul v4.4s, v4.4s, v1.s[0]
    fmul v5.4s, v5.4s, v1.s[0]
    fmul v6.4s, v6.4s, v1.s[0]
    fmul v7.4s, v7.4s, v1.s[0]
    fadd v16.4s, v16.4s, v24.4s
    fadd v17.4s, v17.4s, v25.4s
    fadd v18.4s, v18.4s, v26.4s
    fadd v19.4s, v19.4s, v27.4s
    fadd v20.4s, v20.4s, v4.4s
    fadd v21.4s, v21.4s, v5.4s
    fadd v22.4s, v22.4s, v6.4s
    fadd v23.4s, v23.4s, v7.4s
    stp q16, q17, [x1]
    stp q18, q19, [x1, #32]
    stp q20, q21, [x2]
    stp q22, q23, [x2, #32]
    fmul v4.4s, v20.4s, v1.s[2]     // sqrt(v * unbias2) + eps
    fmul v5.4s, v21.4s, v1.s[2]
    fmul v6.4s, v22.4s, v1.s[2]
    fmul v7.4s, v23.4s, v1.s[2]
    fsqrt v4.4s, v4.4s
    fsqrt v5.4s, v5.4s
    fsqrt v6.4s, v6.4s
    fsqrt v7.4s, v7.4s
    fadd v4.4s, v4.4s, v3.4s
    fadd v5.4s, v5.4s, v3.4s
    fadd v6.4s, v6.4s, v3.4s
    fadd v7.4s, v7.4s, v3.4s
    fmul v16.4s, v16.4s, v1.s[1]    // d = (m * unbias1) / that + params * weight_decay
    fmul v17.4s, v17.4s, v1.s[1]
    fmul v18.4s, v18.4s, v1.s[1]
    fmul v19.4s, v19.4s, v1.s[1]
    fdiv v16.4s, v16.4s, v4.4s
    fdiv v17.4s, v17.4s, v5.4s
    fdiv v18.4s, v18.4s, v6.4s
    fdiv v19.4s, v19.4s, v7.4s
    fmul v4.4s, v28.4s, v2.s[0]
    fmul v5.4s, v29.4s, v2.s[0]
    fmul v6.4s, v30.4s, v2.s[0]
    fmul v7.4s, v31.4s, v2.s[0]
    fadd v16.4s, v16.4s, v4.4s
    fadd v17.4s, v17.4s, v5.4s
    fadd v18.4s, v18.4s, v6.4s
    fadd v19.4s, v19.4s, v7.4s
    fmul v16.4s, v16.4s, v0.s[0]    // params = params - lr * d
    fmul v17.4s, v17.4s, v0.s[0]
    fmul v18.4s, v18.4s, v0.s[0]
    fmul v19.4s, v19.4s, v0.s[0]
    fsub v28.4s, v28.4s, v16.4s
    fsub v29.4s, v29.4s, v17.4s
    fsub v30.4s, v30.4s, v18.4s
    fsub v31.4s, v31.4s, v19.4s
    stp q28, q29, [x0]
    stp q30, q31, [x0, #32]
    add x0, x0, #64
    add x1, x1, #64
    add x2, x2, #64
    add x3, x3, #64
    subs x6, x6, #1
    b.ne LOCAL(adamw_block)
LOCAL(adamw_fours):
    ubfx x6, x5, #2, #2         // (n / 4) % 4
    cbz x6, LOCAL(adamw_ones)
LOCAL(adamw_four):
    ldr q16, [x1]
    ldr q24, [x3], #16
    ldr q20, [x2]
    ldr q28, [x0]
    fmul v4.4s, v24.4s, v24.4s
    fmul v16.4s, v16.4s, v0.s[1]
    fmul v24.4s, v24.4s, v0.s[2]
    fmul v20.4s, v20.4s, v0.s[3]
    fmul v4.4s, v4.4s, v1.s[0]
    fadd v16.4s, v16.4s, v24.4s
    fadd v20.4s, v20.4s, v4.4s
    str q16, [x1], #16
    str q20, [x2], #16
    fmul v4.4s, v20.4s, v1.s[2]
    fsqrt v4.4s, v4.4s
    fadd v4.4s, v4.4s, v3.4s
    fmul v16.4s, v16.4s, v1.s[1]
    fdiv v16.4s, v16.4s, v4.4s
    fmul v4.4s, v28.4s, v2.s[0]
    fadd v16.4s, v16.4s, v4.4s
    fmul v16.4s, v16.4s, v0.s[0]
    fsub v28.4s, v28.4s, v16.4s
    str q28, [x0], #16
    subs x6, x6, #1
    b.ne LOCAL(adamw_four)
LOCAL(adamw_ones):
    ands x5, x5, #3
    b.eq LOCAL(adamw_done)
LOCAL(adamw_one):
    ldr s16, [x1]
    ldr s24, [x3], #4
    ldr s20, [x2]
    ldr s28, [x0]
    fmul s4, s24, s24
    fmul s16, s16, v0.s[1]
    fmul s24, s24, v0.s[2]
    fmul s20, s20, v0.s[3]
    fmul s4, s4, v1.s[0]
    fadd s16, s16, s24
    fadd s20, s20, s4
    str s16, [x1], #4
    str s20, [x2], #4
    fmul s4, s20, v1.s[2]
    fsqrt s4, s4
    fadd s4, s4, s3
    fmul s16, s16, v1.s[1]
    fdiv s16, s16, s4
    fmul s4, s28, v2.s[0]
    fadd s16, s16, s4
    fmul s16, s16, v0.s[0]
    fsub s28, s28, s16
    str s28, [x0], #4
    subs x5, x5, #1
    b.ne LOCAL(adamw_one)
LOCAL(adamw_done):
    ret
END(mahe_adamw_neon)
#endif

#include "../note.h"
