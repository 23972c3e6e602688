/* One block of quantised values to float32, NEON. Replaces the decoding part of src/reference/blocks.c. 16, then 1
 * element at a time; q4 then takes a byte, so two. Only the last block of an array has a rest of 16. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"
#include "codes.h"

    .text

/* void mahe_decode_q8_neon(float *x, const int8_t *codes, float scale, size_t n)
 *      for (i = 0; i < n; i++) x[i] = (float)codes[i] * scale;
 * x0 x, x1 codes, v0.s[0] scale, x2 n, x3 turns left. v16-17 codes, v20-23 values. */
ENTRY(mahe_decode_q8_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(decode_q8_ones)
    .p2align 4
LOCAL(decode_q8_block):
    codes_q8
    values_16
    stp q20, q21, [x0]
    stp q22, q23, [x0, #32]
    add x0, x0, #64
    subs x3, x3, #1
    b.ne LOCAL(decode_q8_block)
LOCAL(decode_q8_ones):
    ands x2, x2, #15
    b.eq LOCAL(decode_q8_done)
LOCAL(decode_q8_one):
    value_q8
    str s20, [x0], #4
    subs x2, x2, #1
    b.ne LOCAL(decode_q8_one)
LOCAL(decode_q8_done):
    ret
END(mahe_decode_q8_neon)

/* void mahe_decode_q4_neon(float *x, const uint8_t *codes, float scale, size_t n)
 *      for (i = 0; i < n; i++) x[i] = (float)((codes[i / 2] >> (i % 2 * 4) & 15) - 8) * scale;
 * Registers as above. */
ENTRY(mahe_decode_q4_neon)
    constants_q4
    lsr x3, x2, #4
    cbz x3, LOCAL(decode_q4_pairs)
    .p2align 4
LOCAL(decode_q4_block):
    codes_q4
    values_16
    stp q20, q21, [x0]
    stp q22, q23, [x0, #32]
    add x0, x0, #64
    subs x3, x3, #1
    b.ne LOCAL(decode_q4_block)
LOCAL(decode_q4_pairs):
    ands x2, x2, #15
    b.eq LOCAL(decode_q4_done)
LOCAL(decode_q4_pair):
    value_q4_low
    str s20, [x0], #4
    subs x2, x2, #1
    b.eq LOCAL(decode_q4_done)
    value_q4_high
    str s20, [x0], #4
    subs x2, x2, #1
    b.ne LOCAL(decode_q4_pair)
LOCAL(decode_q4_done):
    ret
END(mahe_decode_q4_neon)

/* void mahe_decode_add_q8_neon(float *dst, const int8_t *codes, float scale, float weight, size_t n)
 *      for (i = 0; i < n; i++) dst[i] = dst[i] + weight * ((float)codes[i] * scale);
 * x0 dst, x1 codes, v0.s[0] scale, v1.s[0] weight, x2 n, x3 turns left. v16-17 codes, v20-23 values, v24-27 dst. */
ENTRY(mahe_decode_add_q8_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(add_q8_ones)
    .p2align 4
LOCAL(add_q8_block):
    codes_q8
    values_16
    ldp q24, q25, [x0]
    ldp q26, q27, [x0, #32]
    fmul v20.4s, v20.4s, v1.s[0]
    fmul v21.4s, v21.4s, v1.s[0]
    fmul v22.4s, v22.4s, v1.s[0]
    fmul v23.4s, v23.4s, v1.s[0]
    fadd v24.4s, v24.4s, v20.4s
    fadd v25.4s, v25.4s, v21.4s
    fadd v26.4s, v26.4s, v22.4s
    fadd v27.4s, v27.4s, v23.4s
    stp q24, q25, [x0]
    stp q26, q27, [x0, #32]
    add x0, x0, #64
    subs x3, x3, #1
    b.ne LOCAL(add_q8_block)
LOCAL(add_q8_ones):
    ands x2, x2, #15
    b.eq LOCAL(add_q8_done)
LOCAL(add_q8_one):
    value_q8
    fmul s20, s20, s1
    ldr s24, [x0]
    fadd s24, s24, s20
    str s24, [x0], #4
    subs x2, x2, #1
    b.ne LOCAL(add_q8_one)
LOCAL(add_q8_done):
    ret
END(mahe_decode_add_q8_neon)

/* void mahe_decode_add_q4_neon(float *dst, const uint8_t *codes, float scale, float weight, size_t n)
 *      for (i = 0; i < n; i++)
 *          dst[i] = dst[i] + weight * ((float)((codes[i / 2] >> (i % 2 * 4) & 15) - 8) * scale);
 * Registers as above. */
ENTRY(mahe_decode_add_q4_neon)
    constants_q4
    lsr x3, x2, #4
    cbz x3, LOCAL(add_q4_pairs)
    .p2align 4
LOCAL(add_q4_block):
    codes_q4
    values_16
    ldp q24, q25, [x0]
    ldp q26, q27, [x0, #32]
    fmul v20.4s, v20.4s, v1.s[0]
    fmul v21.4s, v21.4s, v1.s[0]
    fmul v22.4s, v22.4s, v1.s[0]
    fmul v23.4s, v23.4s, v1.s[0]
    fadd v24.4s, v24.4s, v20.4s
    fadd v25.4s, v25.4s, v21.4s
    fadd v26.4s, v26.4s, v22.4s
    fadd v27.4s, v27.4s, v23.4s
    stp q24, q25, [x0]
    stp q26, q27, [x0, #32]
    add x0, x0, #64
    subs x3, x3, #1
    b.ne LOCAL(add_q4_block)
LOCAL(add_q4_pairs):
    ands x2, x2, #15
    b.eq LOCAL(add_q4_done)
LOCAL(add_q4_pair):
    value_q4_low
    fmul s20, s20, s1
    ldr s24, [x0]
    fadd s24, s24, s20
    str s24, [x0], #4
    subs x2, x2, #1
    b.eq LOCAL(add_q4_done)
    value_q4_high
    fmul s20, s20, s1
    ldr s24, [x0]
    fadd s24, s24, s20
    str s24, [x0], #4
    subs x2, x2, #1
    b.ne LOCAL(add_q4_pair)
LOCAL(add_q4_done):
    ret
END(mahe_decode_add_q4_neon)
#endif

#include "../note.h"
