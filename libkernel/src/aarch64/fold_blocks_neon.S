/* Fixed-point fold of one block of quantised values, NEON. Replaces the fold part of src/reference/blocks.c. 16, then
 * 1 element at a time; q4 then takes a byte, so two. The float32 product is rounded before it is widened, as if decode
 * had written it; fold_neon.S says why FCVTNS is the rint. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"
#include "codes.h"

    .text

/* acc[0..16) += rint((double)v20-23 * factor); x0 goes on. v24-31 products, v4-7 and v16-19 acc. */
.macro add_products
    fcvtl v24.2d, v20.2s
    fcvtl2 v25.2d, v20.4s
    fcvtl v26.2d, v21.2s
    fcvtl2 v27.2d, v21.4s
    fcvtl v28.2d, v22.2s
    fcvtl2 v29.2d, v22.4s
    fcvtl v30.2d, v23.2s
    fcvtl2 v31.2d, v23.4s
    ldp q4, q5, [x0]
    ldp q6, q7, [x0, #32]
    ldp q16, q17, [x0, #64]
    ldp q18, q19, [x0, #96]
    fmul v24.2d, v24.2d, v1.d[0]
    fmul v25.2d, v25.2d, v1.d[0]
    fmul v26.2d, v26.2d, v1.d[0]
    fmul v27.2d, v27.2d, v1.d[0]
    fmul v28.2d, v28.2d, v1.d[0]
    fmul v29.2d, v29.2d, v1.d[0]
    fmul v30.2d, v30.2d, v1.d[0]
    fmul v31.2d, v31.2d, v1.d[0]
    fcvtns v24.2d, v24.2d
    fcvtns v25.2d, v25.2d
    fcvtns v26.2d, v26.2d
    fcvtns v27.2d, v27.2d
    fcvtns v28.2d, v28.2d
    fcvtns v29.2d, v29.2d
    fcvtns v30.2d, v30.2d
    fcvtns v31.2d, v31.2d
    add v4.2d, v4.2d, v24.2d
    add v5.2d, v5.2d, v25.2d
    add v6.2d, v6.2d, v26.2d
    add v7.2d, v7.2d, v27.2d
    add v16.2d, v16.2d, v28.2d
    add v17.2d, v17.2d, v29.2d
    add v18.2d, v18.2d, v30.2d
    add v19.2d, v19.2d, v31.2d
    stp q4, q5, [x0]
    stp q6, q7, [x0, #32]
    stp q16, q17, [x0, #64]
    stp q18, q19, [x0, #96]
    add x0, x0, #128
.endm

/* acc[0] += rint((double)s20 * factor); x0 goes on. Changes x7, x8. */
.macro add_product
    fcvt d20, s20
    ldr x7, [x0]
    fmul d20, d20, d1
    fcvtns x8, d20
    add x7, x7, x8
    str x7, [x0], #8
.endm

/* void mahe_fold_q8_neon(int64_t *acc, const int8_t *codes, float scale, double factor, size_t n)
 *      for (i = 0; i < n; i++) acc[i] = acc[i] + (int64_t)rint((double)((float)codes[i] * scale) * factor);
 * x0 acc, x1 codes, v0.s[0] scale, v1.d[0] factor, x2 n, x3 turns left. v16-17 codes, v20-23 values. */
ENTRY(mahe_fold_q8_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(fold_q8_ones)
    .p2align 4
LOCAL(fold_q8_block):
    codes_q8
    values_16
    add_products
    subs x3, x3, #1
    b.ne LOCAL(fold_q8_block)
LOCAL(fold_q8_ones):
    ands x2, x2, #15
    b.eq LOCAL(fold_q8_done)
LOCAL(fold_q8_one):
    value_q8
    add_product
    subs x2, x2, #1
    b.ne LOCAL(fold_q8_one)
LOCAL(fold_q8_done):
    ret
END(mahe_fold_q8_neon)

/* void mahe_fold_q4_neon(int64_t *acc, const uint8_t *codes, float scale, double factor, size_t n)
 *      for (i = 0; i < n; i++) {
 *          value = (float)((codes[i / 2] >> (i % 2 * 4) & 15) - 8) * scale;
 *          acc[i] = acc[i] + (int64_t)rint((double)value * factor);
 *      }
 * Registers as above. */
ENTRY(mahe_fold_q4_neon)
    constants_q4
    lsr x3, x2, #4
    cbz x3, LOCAL(fold_q4_pairs)
    .p2align 4
LOCAL(fold_q4_block):
    codes_q4
    values_16
    add_products
    subs x3, x3, #1
    b.ne LOCAL(fold_q4_block)
LOCAL(fold_q4_pairs):
    ands x2, x2, #15
    b.eq LOCAL(fold_q4_done)
LOCAL(fold_q4_pair):
    value_q4_low
    add_product
    subs x2, x2, #1
    b.eq LOCAL(fold_q4_done)
    value_q4_high
    add_product
    subs x2, x2, #1
    b.ne LOCAL(fold_q4_pair)
LOCAL(fold_q4_done):
    ret
END(mahe_fold_q4_neon)
#endif

#include "../note.h"
