/* asm.h: what the three object formats (ELF, Mach-O, COFF) spell differently. For .S files only.
 *
 * Rules of these files: Intel syntax, System V convention, leaf functions without a frame and without the red zone (the
 * code is shared with Windows, which has none), VEX instructions only, unaligned accesses only, vzeroupper before every
 * return, touched registers: rax, rcx, rdx, rsi, rdi, r8-r11, ymm0-15.
 */
#ifndef MAHE_ASM_H
#define MAHE_ASM_H

    .intel_syntax noprefix

#if defined(__APPLE__)
#define SYMBOL(name) _##name
#define LOCAL(name) L##name
#define HIDE(name) .private_extern SYMBOL(name)
#define TYPE(name)
#define SIZE(name)
#elif defined(__ELF__)
#define SYMBOL(name) name
#define LOCAL(name) .L##name
#define HIDE(name) .hidden SYMBOL(name)
#define TYPE(name) .type SYMBOL(name), @function
#define SIZE(name) .size SYMBOL(name), . - SYMBOL(name)
#else
#define SYMBOL(name) name
#define LOCAL(name) .L##name
#define HIDE(name)
#define TYPE(name)
#define SIZE(name)
#endif

#define ENTRY(name) \
    .globl SYMBOL(name); HIDE(name); TYPE(name); .p2align 5; SYMBOL(name): endbr64
#define END(name) SIZE(name)

#endif
