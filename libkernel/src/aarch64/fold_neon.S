/* Fixed-point fold, NEON. Replaces src/reference/fold.c. 16, then 4, then 1 element at a time.
 *
 * FCVTNS converts float64 to int64, to nearest, ties to even: rint and the conversion in one, exact for the products
 * the precondition allows. Beyond them it saturates, and a NaN gives 0: harmless.
 */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_fold_neon(int64_t *acc, const float *delta, double scale, size_t n)
 *      for (i = 0; i < n; i++) acc[i] = acc[i] + (int64_t)rint((double)delta[i] * scale);
 * x0 acc, x1 delta, v0.d[0] scale, x2 n, x3 turns left. v16-19 delta, then v16-23 acc; v24-31 products. */
ENTRY(mahe_fold_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(fold_fours)
    .p2align 4
LOCAL(fold_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    fcvtl v24.2d, v16.2s
    fcvtl2 v25.2d, v16.4s
    fcvtl v26.2d, v17.2s
    fcvtl2 v27.2d, v17.4s
    fcvtl v28.2d, v18.2s
    fcvtl2 v29.2d, v18.4s
    fcvtl v30.2d, v19.2s
    fcvtl2 v31.2d, v19.4s
    ldp q16, q17, [x0]
    ldp q18, q19, [x0, #32]
    ldp q20, q21, [x0, #64]
    ldp q22, q23, [x0, #96]
    fmul v24.2d, v24.2d, v0.d[0]
    fmul v25.2d, v25.2d, v0.d[0]
    fmul v26.2d, v26.2d, v0.d[0]
    fmul v27.2d, v27.2d, v0.d[0]
    fmul v28.2d, v28.2d, v0.d[0]
    fmul v29.2d, v29.2d, v0.d[0]
    fmul v30.2d, v30.2d, v0.d[0]
    fmul v31.2d, v31.2d, v0.d[0]
    fcvtns v24.2d, v24.2d
    fcvtns v25.2d, v25.2d
    fcvtns v26.2d, v26.2d
    fcvtns v27.2d, v27.2d
    fcvtns v28.2d, v28.2d
    fcvtns v29.2d, v29.2d
    fcvtns v30.2d, v30.2d
    fcvtns v31.2d, v31.2d
    add v16.2d, v16.2d, v24.2d
    add v17.2d, v17.2d, v25.2d
    add v18.2d, v18.2d, v26.2d
    add v19.2d, v19.2d, v27.2d
    add v20.2d, v20.2d, v28.2d
    add v21.2d, v21.2d, v29.2d
    add v22.2d, v22.2d, v30.2d
    add v23.2d, v23.2d, v31.2d
    stp q16, q17, [x0]
    stp q18, q19, [x0, #32]
    stp q20, q21, [x0, #64]
    stp q22, q23, [x0, #96]
    add x1, x1, #64
    add x0, x0, #128
    subs x3, x3, #1
    b.ne LOCAL(fold_block)
LOCAL(fold_fours):
    ubfx x3, x2, #2, #2         // (n / 4) % 4
    cbz x3, LOCAL(fold_ones)
LOCAL(fold_four):
    ldr q16, [x1], #16
    fcvtl v24.2d, v16.2s
    fcvtl2 v25.2d, v16.4s
    ldp q16, q17, [x0]
    fmul v24.2d, v24.2d, v0.d[0]
    fmul v25.2d, v25.2d, v0.d[0]
    fcvtns v24.2d, v24.2d
    fcvtns v25.2d, v25.2d
    add v16.2d, v16.2d, v24.2d
    add v17.2d, v17.2d, v25.2d
    stp q16, q17, [x0], #32
    subs x3, x3, #1
    b.ne LOCAL(fold_four)
LOCAL(fold_ones):
    ands x2, x2, #3
    b.eq LOCAL(fold_done)
LOCAL(fold_one):
    ldr s16, [x1], #4
    ldr x4, [x0]
    fcvt d16, s16
    fmul d16, d16, d0
    fcvtns x5, d16
    add x4, x4, x5
    str x4, [x0], #8
    subs x2, x2, #1
    b.ne LOCAL(fold_one)
LOCAL(fold_done):
    ret
END(mahe_fold_neon)
#endif

#include "../note.h"
