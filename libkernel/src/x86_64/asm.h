/* asm.h: the rules of the x86-64 files, and their first and last lines. For .S files only.
 *
 * Intel syntax, System V convention, leaf functions without a frame and without the red zone (the code is shared with
 * Windows, which has none), VEX instructions only, unaligned accesses only, vzeroupper before every return, touched
 * registers: rax, rcx, rdx, rsi, rdi, r8-r11, ymm0-15. Arguments: rdi, rsi, rdx, rcx, r8, r9; xmm0, xmm1.
 */
#ifndef MAHE_ASM_H
#define MAHE_ASM_H

#include "../object.h"

    .intel_syntax noprefix

#define ENTRY(name) \
    .globl SYMBOL(name); HIDE(name); TYPE(name); .p2align 5; SYMBOL(name): endbr64
#define END(name) SIZE(name)

/* How far ahead to prefetch, in bytes; further where there is one array only. By itself the CPU fetches ahead only to
 * the end of a page of 4 KiB, and hardly what is only written. Beyond the end of an array a prefetch does no harm: it
 * never faults and changes nothing. */
#define AHEAD 2048
#define AHEAD_ONE 8192

#endif
