/* nibbles.h: reading 4-bit codes, for the x86-64 files on q4. The codes are read as a little-endian number: element i
 * is its nibble i, counted from the lowest, and has that nibble less 8 as its code. All macros read at rsi.
 */
#ifndef MAHE_NIBBLES_H
#define MAHE_NIBBLES_H

/* ymm13: how far to shift each lane, 0, 4, ..., 28. ymm14: 15 in each, ymm15: 8 in each. Uses r8 and eax. */
.macro nibble_constants
    movabs r8, 0x1c1814100c080400
    vmovq xmm13, r8
    vpmovzxbd ymm13, xmm13
    mov eax, 15
    vmovd xmm14, eax
    vpbroadcastd ymm14, xmm14
    mov eax, 8
    vmovd xmm15, eax
    vpbroadcastd ymm15, xmm15
.endm

/* to = the 8 codes in the 4 bytes at rsi + offset, as floats. */
.macro nibbles_8 to, offset
    vpbroadcastd \to, dword ptr [rsi + \offset]
    vpsrlvd \to, \to, ymm13
    vpand \to, \to, ymm14
    vpsubd \to, \to, ymm15
    vcvtdq2ps \to, \to
.endm

/* eax = the last edx nibbles, 1 to 7 of them, read byte by byte from the last one down. Uses ecx and r8d. */
.macro last_nibbles loop
    lea ecx, [rdx + 1]
    shr ecx, 1
    xor eax, eax
\loop:
    shl eax, 8
    movzx r8d, byte ptr [rsi + rcx - 1]
    or eax, r8d
    dec ecx
    jnz \loop
.endm

/* to = the code of the lowest nibble of eax, as a float, which then leaves eax. Uses r8d. */
.macro nibble_1 to
    mov r8d, eax
    and r8d, 15
    sub r8d, 8
    vcvtsi2ss \to, xmm0, r8d
    shr eax, 4
.endm

#endif
