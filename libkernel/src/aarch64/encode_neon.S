/* Block quantisation, NEON. Replaces the encoding part of src/reference/blocks.c: what to send, then the codes and what
 * they leave over. 16 elements at a time, then 1 (q4: 2). Only the last block of an array has a rest of 16. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* w0 = the largest of the bits in v4-7 and w6. */
.macro largest
    umax v4.4s, v4.4s, v5.4s
    umax v6.4s, v6.4s, v7.4s
    umax v4.4s, v4.4s, v6.4s
    umaxv s4, v4.4s
    fmov w0, s4
    cmp w6, w0
    csel w0, w6, w0, hi
.endm

/* v4-7 = max(v4-7, magnitudes of v16-19 as bits), which it changes. */
.macro maxima
    bic v16.4s, #0x80, lsl #24  // clears the sign
    bic v17.4s, #0x80, lsl #24
    bic v18.4s, #0x80, lsl #24
    bic v19.4s, #0x80, lsl #24
    umax v4.4s, v4.4s, v16.4s
    umax v5.4s, v5.4s, v17.4s
    umax v6.4s, v6.4s, v18.4s
    umax v7.4s, v7.4s, v19.4s
.endm

/* uint32_t mahe_add_absmax_neon(float *a, const float *x, const float *residual, size_t n)
 *      for (i = 0; i < n; i++) {
 *          a[i] = residual == NULL ? x[i] : x[i] + residual[i];
 *          absmax = max(absmax, a[i] as uint32 & 0x7fffffff);
 *      }
 * x0 a, x1 x, x2 residual (may be a), x3 n, x4 turns left. v4-7 and w6 absmax, v16-19 a, v20-23 residual. */
ENTRY(mahe_add_absmax_neon)
    movi v4.4s, #0
    movi v5.4s, #0
    movi v6.4s, #0
    movi v7.4s, #0
    mov w6, #0
    lsr x4, x3, #4
    cbz x2, LOCAL(copy_absmax)
    cbz x4, LOCAL(absmax_ones)
    .p2align 4
LOCAL(absmax_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    ldp q20, q21, [x2]
    ldp q22, q23, [x2, #32]
    fadd v16.4s, v16.4s, v20.4s
    fadd v17.4s, v17.4s, v21.4s
    fadd v18.4s, v18.4s, v22.4s
    fadd v19.4s, v19.4s, v23.4s
    stp q16, q17, [x0]
    stp q18, q19, [x0, #32]
    maxima
    add x0, x0, #64
    add x1, x1, #64
    add x2, x2, #64
    subs x4, x4, #1
    b.ne LOCAL(absmax_block)
LOCAL(absmax_ones):
    ands x3, x3, #15
    b.eq LOCAL(absmax_done)
LOCAL(absmax_one):
    ldr s16, [x1], #4
    ldr s20, [x2], #4
    fadd s16, s16, s20
    str s16, [x0], #4
    fmov w5, s16
    and w5, w5, #0x7fffffff
    cmp w5, w6
    csel w6, w5, w6, hi
    subs x3, x3, #1
    b.ne LOCAL(absmax_one)
LOCAL(absmax_done):
    largest
    ret
LOCAL(copy_absmax):             // residual is NULL
    cbz x4, LOCAL(copy_ones)
    .p2align 4
LOCAL(copy_block):
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    stp q16, q17, [x0]
    stp q18, q19, [x0, #32]
    maxima
    add x0, x0, #64
    add x1, x1, #64
    subs x4, x4, #1
    b.ne LOCAL(copy_block)
LOCAL(copy_ones):
    ands x3, x3, #15
    b.eq LOCAL(copy_done)
LOCAL(copy_one):
    ldr w5, [x1], #4
    str w5, [x0], #4
    and w5, w5, #0x7fffffff
    cmp w5, w6
    csel w6, w5, w6, hi
    subs x3, x3, #1
    b.ne LOCAL(copy_one)
LOCAL(copy_done):
    largest
    ret
END(mahe_add_absmax_neon)

/* The codes of a[0..16) to v20, one int8 each; a[0..16) becomes what they leave over, x1 goes on. FCVTNS rounds to
 * nearest, ties to even, and |a * inverse| is at most Q and a little, so the lowest byte of an int32 is the code.
 * v16-19 a, v20-23 codes as int32, v24-27 codes * scale. */
.macro encode_16
    ldp q16, q17, [x1]
    ldp q18, q19, [x1, #32]
    fmul v20.4s, v16.4s, v1.s[0]
    fmul v21.4s, v17.4s, v1.s[0]
    fmul v22.4s, v18.4s, v1.s[0]
    fmul v23.4s, v19.4s, v1.s[0]
    fcvtns v20.4s, v20.4s
    fcvtns v21.4s, v21.4s
    fcvtns v22.4s, v22.4s
    fcvtns v23.4s, v23.4s
    scvtf v24.4s, v20.4s
    scvtf v25.4s, v21.4s
    scvtf v26.4s, v22.4s
    scvtf v27.4s, v23.4s
    fmul v24.4s, v24.4s, v0.s[0]
    fmul v25.4s, v25.4s, v0.s[0]
    fmul v26.4s, v26.4s, v0.s[0]
    fmul v27.4s, v27.4s, v0.s[0]
    fsub v16.4s, v16.4s, v24.4s
    fsub v17.4s, v17.4s, v25.4s
    fsub v18.4s, v18.4s, v26.4s
    fsub v19.4s, v19.4s, v27.4s
    stp q16, q17, [x1]
    stp q18, q19, [x1, #32]
    add x1, x1, #64
    uzp1 v20.8h, v20.8h, v21.8h // the lower halves of both
    uzp1 v22.8h, v22.8h, v23.8h
    uzp1 v20.16b, v20.16b, v22.16b
.endm

/* The same for a[0], code to a register. */
.macro encode_one code
    ldr s16, [x1]
    fmul s20, s16, s1
    fcvtns \code, s20
    scvtf s24, \code
    fmul s24, s24, s0
    fsub s16, s16, s24
    str s16, [x1], #4
.endm

/* void mahe_encode_q8_neon(int8_t *codes, float *a, float scale, float inverse, size_t n)
 *      for (i = 0; i < n; i++) { codes[i] = rint(a[i] * inverse); a[i] = a[i] - (float)codes[i] * scale; }
 * x0 codes, x1 a, v0.s[0] scale, v1.s[0] inverse, x2 n, x3 turns left, w4 code. */
ENTRY(mahe_encode_q8_neon)
    lsr x3, x2, #4
    cbz x3, LOCAL(encode_q8_ones)
    .p2align 4
LOCAL(encode_q8_block):
    encode_16
    str q20, [x0], #16
    subs x3, x3, #1
    b.ne LOCAL(encode_q8_block)
LOCAL(encode_q8_ones):
    ands x2, x2, #15
    b.eq LOCAL(encode_q8_done)
LOCAL(encode_q8_one):
    encode_one w4
    strb w4, [x0], #1
    subs x2, x2, #1
    b.ne LOCAL(encode_q8_one)
LOCAL(encode_q8_done):
    ret
END(mahe_encode_q8_neon)

/* void mahe_encode_q4_neon(uint8_t *codes, float *a, float scale, float inverse, size_t n)
 *      code[i] and a[i] as above for i < n, code[n] = 0; codes[i / 2] = (code[i] + 8) | (code[i + 1] + 8) << 4;
 * In a pair of bytes, read as uint16, h = low | high << 8 and both are at most 15: the low byte of h + (h >> 4) is
 * low | high << 4. Registers as above, w5 second code, v2 eight in every byte. */
ENTRY(mahe_encode_q4_neon)
    movi v2.16b, #8
    lsr x3, x2, #4
    cbz x3, LOCAL(encode_q4_pairs)
    .p2align 4
LOCAL(encode_q4_block):
    encode_16
    add v20.16b, v20.16b, v2.16b
    usra v20.8h, v20.8h, #4
    xtn v20.8b, v20.8h
    str d20, [x0], #8
    subs x3, x3, #1
    b.ne LOCAL(encode_q4_block)
LOCAL(encode_q4_pairs):
    and x2, x2, #15
    subs x2, x2, #2
    b.lo LOCAL(encode_q4_last)
LOCAL(encode_q4_pair):
    encode_one w4
    encode_one w5
    add w4, w4, #8
    add w5, w5, #8
    orr w4, w4, w5, lsl #4
    strb w4, [x0], #1
    subs x2, x2, #2
    b.hs LOCAL(encode_q4_pair)
LOCAL(encode_q4_last):
    tbz x2, #0, LOCAL(encode_q4_done)   // x2 is n - 2 modulo 2^64: odd if one is left
    encode_one w4
    add w4, w4, #0x88
    strb w4, [x0]
LOCAL(encode_q4_done):
    ret
END(mahe_encode_q4_neon)
#endif

#include "../note.h"
