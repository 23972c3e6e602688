/* The largest magnitude, NEON. Replaces src/reference/absmax.c. 16 elements at a time, then 1. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* uint32_t mahe_absmax_neon(const float *x, size_t n)
 *      for (i = 0; i < n; i++) absmax = max(absmax, x[i] as uint32 & 0x7fffffff);
 *      return absmax;
 * x0 x, x1 n, x2 turns left. v4-7 and w3 largest so far, v16-19 x. */
ENTRY(mahe_absmax_neon)
    movi v4.4s, #0
    movi v5.4s, #0
    movi v6.4s, #0
    movi v7.4s, #0
    mov w3, #0
    lsr x2, x1, #4
    cbz x2, LOCAL(largest_ones)
    .p2align 4
LOCAL(largest_block):
    ldp q16, q17, [x0]
    ldp q18, q19, [x0, #32]
    bic v16.4s, #0x80, lsl #24  // clears the sign
    bic v17.4s, #0x80, lsl #24
    bic v18.4s, #0x80, lsl #24
    bic v19.4s, #0x80, lsl #24
    umax v4.4s, v4.4s, v16.4s
    umax v5.4s, v5.4s, v17.4s
    umax v6.4s, v6.4s, v18.4s
    umax v7.4s, v7.4s, v19.4s
    add x0, x0, #64
    subs x2, x2, #1
    b.ne LOCAL(largest_block)
LOCAL(largest_ones):
    ands x1, x1, #15
    b.eq LOCAL(largest_lanes)
LOCAL(largest_one):
    ldr w4, [x0], #4
    and w4, w4, #0x7fffffff
    cmp w4, w3
    csel w3, w4, w3, hi
    subs x1, x1, #1
    b.ne LOCAL(largest_one)
LOCAL(largest_lanes):
    umax v4.4s, v4.4s, v5.4s
    umax v6.4s, v6.4s, v7.4s
    umax v4.4s, v4.4s, v6.4s
    umaxv s4, v4.4s
    fmov w0, s4
    cmp w3, w0
    csel w0, w3, w0, hi
    ret
END(mahe_absmax_neon)
#endif

#include "../note.h"
