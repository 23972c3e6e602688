/* asm.h: the rules of the AArch64 files, and their first and last lines. For .S files only.
 *
 * AAPCS64, leaf functions without a frame, touched registers: x0-x15, v0-v7, v16-v31 (v8-v15 belong to the caller, x18
 * to the system). Arguments: x0-x7; s0/d0, s1/d1. A result of 32 bits: w0. Lengths are 64 bits. Separate fmul and fadd:
 * fmla rounds once where the contract rounds twice. One statement to a line: on macOS `;` begins a comment.
 */
#ifndef MAHE_ASM_H
#define MAHE_ASM_H

#include "../object.h"

.macro entry name
    .globl \name
#if defined(__APPLE__)
    .private_extern \name
#elif defined(__ELF__)
    .hidden \name
    .type \name, %function
#endif
    .p2align 5
\name:
    hint #34                    // bti c, which old assemblers do not know by name
.endm

.macro end name
#if defined(__ELF__)
    .size \name, . - \name
#endif
.endm

#define ENTRY(name) entry SYMBOL(name)
#define END(name) end SYMBOL(name)

#endif
