/* codes.h: the steps that decode_neon.S and fold_blocks_neon.S share. For .S files only, after asm.h.
 *
 * In all of them: x0 what is written, x1 codes, v0.s[0] scale of the block. v2 fifteen and v3 eight in every byte where
 * the codes are q4. A q4 byte holds element 2 i in its low half, 2 i + 1 in its high half, each as code + 8.
 */
#ifndef MAHE_CODES_H
#define MAHE_CODES_H

/* The constants of q4. */
.macro constants_q4
    movi v2.16b, #15
    movi v3.16b, #8
.endm

/* The next 16 codes of q8 to v16, one int8 each. */
.macro codes_q8
    ldr q16, [x1], #16
.endm

/* The next 16 codes of q4 to v16, one int8 each: both halves of every byte, one after the other, less 8. */
.macro codes_q4
    ldr d16, [x1], #8
    ushr v17.8b, v16.8b, #4
    and v16.8b, v16.8b, v2.8b
    zip1 v16.16b, v16.16b, v17.16b
    sub v16.16b, v16.16b, v3.16b
.endm

/* v20-23 = (float)code * scale for the 16 codes in v16. Changes v16 and v17. */
.macro values_16
    sshll2 v17.8h, v16.16b, #0
    sshll v16.8h, v16.8b, #0
    sshll v20.4s, v16.4h, #0
    sshll2 v21.4s, v16.8h, #0
    sshll v22.4s, v17.4h, #0
    sshll2 v23.4s, v17.8h, #0
    scvtf v20.4s, v20.4s
    scvtf v21.4s, v21.4s
    scvtf v22.4s, v22.4s
    scvtf v23.4s, v23.4s
    fmul v20.4s, v20.4s, v0.s[0]
    fmul v21.4s, v21.4s, v0.s[0]
    fmul v22.4s, v22.4s, v0.s[0]
    fmul v23.4s, v23.4s, v0.s[0]
.endm

/* s20 = (float)code * scale for the next code of q8. Changes w5. */
.macro value_q8
    ldrsb w5, [x1], #1
    scvtf s20, w5
    fmul s20, s20, s0
.endm

/* s20 = (float)code * scale for the low half of the next byte of q4, which goes to w5. Changes w6. */
.macro value_q4_low
    ldrb w5, [x1], #1
    and w6, w5, #15
    sub w6, w6, #8
    scvtf s20, w6
    fmul s20, s20, s0
.endm

/* The same for the high half of the byte in w5. */
.macro value_q4_high
    lsr w6, w5, #4
    sub w6, w6, #8
    scvtf s20, w6
    fmul s20, s20, s0
.endm

#endif
