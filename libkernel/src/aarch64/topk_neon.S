/* The two passes of the radix select, NEON. Replaces src/reference/topk.c. Vectors only find which of 16 entries
 * matter; the few that do are handled one by one. */
#if defined(__aarch64__) && !defined(__AARCH64EB__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* From four masks of four lanes, all ones or zero (v0-3), one bit for each entry: x8 has bit 4 i set where entry i's
 * lane was set. Flags: eq if there is none. First a byte for each entry; SHRN by 4 keeps half a byte of each. */
.macro hits_16
    uzp1 v0.8h, v0.8h, v1.8h
    uzp1 v2.8h, v2.8h, v3.8h
    uzp1 v0.16b, v0.16b, v2.16b
    shrn v0.8b, v0.8h, #4
    fmov x8, d0
    ands x8, x8, #0x1111111111111111
.endm

/* counts[bucket]++ for the float whose bits are in \bits_w; \bits_x is the same register. w6 shift, w7 mask (it drops
 * the sign bit, too), w12 work. */
.macro count bits_w, bits_x
    lsr \bits_w, \bits_w, w6
    and \bits_w, \bits_w, w7
    ldr w12, [x0, \bits_x, lsl #2]
    add w12, w12, #1
    str w12, [x0, \bits_x, lsl #2]
.endm

/* void mahe_topk_count_neon(uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n)
 *      for (i = 0; i < n; i++) {
 *          magnitude = x[i] as uint32 & 0x7fffffff;
 *          if (magnitude >> level->prefix_shift == level->prefix)
 *              counts[magnitude >> level->shift & level->mask]++;
 *      }
 * x0 counts, x1 x, x2 level (prefix_shift, prefix, shift, mask), x3 n.
 * w4 prefix_shift, w5 prefix, w6 shift, w7 mask & 0x7fffffff >> shift: with it the sign bit need not be cleared first.
 * x2 turns left. v16 -prefix_shift (USHL by a negative count shifts right), v17 prefix. x8 hits, x9-x12 work. */
ENTRY(mahe_topk_count_neon)
    ldp w4, w5, [x2]
    ldp w6, w7, [x2, #8]
    mov w8, #0x7fffffff
    lsr w8, w8, w6
    and w7, w7, w8
    sub w8, w4, #31
    orr w8, w8, w5
    cbnz w8, LOCAL(count_some)
    lsr x2, x3, #2              // prefix_shift 31, prefix 0: every entry counts
    cbz x2, LOCAL(count_ones)
    .p2align 4
LOCAL(count_four):
    ldp w8, w9, [x1]
    ldp w10, w11, [x1, #8]
    count w8, x8
    count w9, x9
    count w10, x10
    count w11, x11
    add x1, x1, #16
    subs x2, x2, #1
    b.ne LOCAL(count_four)
    and x3, x3, #3
    b LOCAL(count_ones)
LOCAL(count_some):
    neg w8, w4
    dup v16.4s, w8
    dup v17.4s, w5
    lsr x2, x3, #4
    and x3, x3, #15
    cbz x2, LOCAL(count_ones)
    .p2align 4
LOCAL(count_block):
    ldp q0, q1, [x1]
    ldp q2, q3, [x1, #32]
    bic v0.4s, #0x80, lsl #24   // clears the sign
    bic v1.4s, #0x80, lsl #24
    bic v2.4s, #0x80, lsl #24
    bic v3.4s, #0x80, lsl #24
    ushl v0.4s, v0.4s, v16.4s
    ushl v1.4s, v1.4s, v16.4s
    ushl v2.4s, v2.4s, v16.4s
    ushl v3.4s, v3.4s, v16.4s
    cmeq v0.4s, v0.4s, v17.4s
    cmeq v1.4s, v1.4s, v17.4s
    cmeq v2.4s, v2.4s, v17.4s
    cmeq v3.4s, v3.4s, v17.4s
    hits_16
    b.eq LOCAL(count_next)
LOCAL(count_hit):
    rbit x9, x8
    clz x9, x9                  // the lowest bit set, 4 i: also where entry i lies, in bytes
    sub x10, x8, #1
    ldr w11, [x1, x9]
    count w11, x11
    ands x8, x8, x10            // without that bit
    b.ne LOCAL(count_hit)
LOCAL(count_next):
    add x1, x1, #64
    subs x2, x2, #1
    b.ne LOCAL(count_block)
LOCAL(count_ones):
    cbz x3, LOCAL(count_done)
LOCAL(count_one):
    ldr w11, [x1], #4
    and w9, w11, #0x7fffffff
    lsr w9, w9, w4
    cmp w9, w5
    b.ne LOCAL(count_skip)
    count w11, x11
LOCAL(count_skip):
    subs x3, x3, #1
    b.ne LOCAL(count_one)
LOCAL(count_done):
    ret
END(mahe_topk_count_neon)

/* void mahe_topk_take_neon(uint32_t *indices, float *values, const float *x, size_t n, uint32_t threshold, size_t ties)
 *      for (i = 0; i < n; i++) {
 *          magnitude = x[i] as uint32 & 0x7fffffff;
 *          if (magnitude < threshold) continue;
 *          if (magnitude == threshold && ties-- == 0) { ties = 0; continue; }
 *          *indices++ = i; *values++ = x[i];
 *      }
 * x0 indices, x1 values, x2 x, x3 n, w4 threshold, x5 ties, x6 turns left, w7 i. v16 threshold. x8 hits, x9-x12 work.
 * Nothing is written but what is taken. */
ENTRY(mahe_topk_take_neon)
    dup v16.4s, w4
    mov w7, #0
    lsr x6, x3, #4
    cbz x6, LOCAL(take_ones)
    .p2align 4
LOCAL(take_block):
    ldp q0, q1, [x2]
    ldp q2, q3, [x2, #32]
    bic v0.4s, #0x80, lsl #24
    bic v1.4s, #0x80, lsl #24
    bic v2.4s, #0x80, lsl #24
    bic v3.4s, #0x80, lsl #24
    cmhs v0.4s, v0.4s, v16.4s
    cmhs v1.4s, v1.4s, v16.4s
    cmhs v2.4s, v2.4s, v16.4s
    cmhs v3.4s, v3.4s, v16.4s
    hits_16
    b.eq LOCAL(take_next)
LOCAL(take_hit):
    rbit x9, x8
    clz x9, x9                  // as in count_hit
    sub x10, x8, #1
    ldr w11, [x2, x9]
    and x8, x8, x10
    and w12, w11, #0x7fffffff
    cmp w12, w4
    b.ne LOCAL(take_it)
    cbz x5, LOCAL(take_skip)
    sub x5, x5, #1
LOCAL(take_it):
    add w12, w7, w9, lsr #2
    str w12, [x0], #4
    str w11, [x1], #4
LOCAL(take_skip):
    cbnz x8, LOCAL(take_hit)
LOCAL(take_next):
    add x2, x2, #64
    add w7, w7, #16
    subs x6, x6, #1
    b.ne LOCAL(take_block)
LOCAL(take_ones):
    ands x3, x3, #15
    b.eq LOCAL(take_done)
LOCAL(take_one):
    ldr w11, [x2], #4
    and w12, w11, #0x7fffffff
    cmp w12, w4
    b.lo LOCAL(take_not)
    b.ne LOCAL(take_this)
    cbz x5, LOCAL(take_not)
    sub x5, x5, #1
LOCAL(take_this):
    str w7, [x0], #4
    str w11, [x1], #4
LOCAL(take_not):
    add w7, w7, #1
    subs x3, x3, #1
    b.ne LOCAL(take_one)
LOCAL(take_done):
    ret
END(mahe_topk_take_neon)
#endif

#include "../note.h"
