/* Quantisation of one block, AVX2. Replaces the encoding half of src/reference/blocks.c. 32, then 8, then 1 (q4: 2)
 * elements at a time.
 *
 * vcvtps2dq rounds as rintf does, nearest, ties to even; vcvtdq2ps is exact. A code of 0 comes back as +0, never -0,
 * as from the int32_t of the C. The packs saturate, which never happens: the caller sees to |a * inverse| <= Q and a
 * little, so |code| <= Q.
 */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* uint32_t mahe_add_absmax_avx2(float *a, const float *x, const float *residual, size_t n)
 *      for (i = 0; i < n; i++) {
 *          a[i] = residual == NULL ? x[i] : x[i] + residual[i];
 *          absmax = max(absmax, a[i] as uint32 & 0x7fffffff);
 *      }
 *      return absmax;
 * rdi a, rsi x, rdx residual, rcx n. r8 = residual as it was, to know NULL by; ymm0, ymm5 largest so far in each lane,
 * ymm6 0x7fffffff. All loads of a step come before its stores: residual == a is fine.
 * The prefetches keep the memory busy with the next block while this one is encoded, which needs only the cache: about
 * a tenth of the time of a quantisation from memory. They are hints: beyond the end of an array they do nothing. */
ENTRY(mahe_add_absmax_avx2)
    vpxor xmm0, xmm0, xmm0
    vpxor xmm5, xmm5, xmm5
    vpcmpeqd ymm6, ymm6, ymm6
    vpsrld ymm6, ymm6, 1
    mov r8, rdx
    mov r9, rcx
    shr r9, 5
    jz LOCAL(absmax_eights)
    .p2align 5
LOCAL(absmax_block):
    prefetcht0 byte ptr [rsi + 2048]
    prefetcht0 byte ptr [rsi + 2112]
    vmovups ymm1, ymmword ptr [rsi]
    vmovups ymm2, ymmword ptr [rsi + 32]
    vmovups ymm3, ymmword ptr [rsi + 64]
    vmovups ymm4, ymmword ptr [rsi + 96]
    test r8, r8
    jz LOCAL(absmax_block_sum)
    prefetcht0 byte ptr [rdx + 2048]
    prefetcht0 byte ptr [rdx + 2112]
    vaddps ymm1, ymm1, ymmword ptr [rdx]
    vaddps ymm2, ymm2, ymmword ptr [rdx + 32]
    vaddps ymm3, ymm3, ymmword ptr [rdx + 64]
    vaddps ymm4, ymm4, ymmword ptr [rdx + 96]
LOCAL(absmax_block_sum):
    vmovups ymmword ptr [rdi], ymm1
    vmovups ymmword ptr [rdi + 32], ymm2
    vmovups ymmword ptr [rdi + 64], ymm3
    vmovups ymmword ptr [rdi + 96], ymm4
    vpand ymm1, ymm1, ymm6
    vpand ymm2, ymm2, ymm6
    vpand ymm3, ymm3, ymm6
    vpand ymm4, ymm4, ymm6
    vpmaxud ymm0, ymm0, ymm1
    vpmaxud ymm5, ymm5, ymm2
    vpmaxud ymm0, ymm0, ymm3
    vpmaxud ymm5, ymm5, ymm4
    add rsi, 128
    add rdx, 128
    add rdi, 128
    dec r9
    jnz LOCAL(absmax_block)
    vpmaxud ymm0, ymm0, ymm5
LOCAL(absmax_eights):
    mov r9d, ecx
    shr r9d, 3
    and r9d, 3
    jz LOCAL(absmax_ones)
LOCAL(absmax_eight):
    vmovups ymm1, ymmword ptr [rsi]
    test r8, r8
    jz LOCAL(absmax_eight_sum)
    vaddps ymm1, ymm1, ymmword ptr [rdx]
LOCAL(absmax_eight_sum):
    vmovups ymmword ptr [rdi], ymm1
    vpand ymm1, ymm1, ymm6
    vpmaxud ymm0, ymm0, ymm1
    add rsi, 32
    add rdx, 32
    add rdi, 32
    dec r9d
    jnz LOCAL(absmax_eight)
LOCAL(absmax_ones):
    and ecx, 7
    jz LOCAL(absmax_lanes)
LOCAL(absmax_one):
    vmovss xmm1, dword ptr [rsi]            /* the other seven lanes become 0 */
    test r8, r8
    jz LOCAL(absmax_one_sum)
    vaddss xmm1, xmm1, dword ptr [rdx]
LOCAL(absmax_one_sum):
    vmovss dword ptr [rdi], xmm1
    vpand ymm1, ymm1, ymm6
    vpmaxud ymm0, ymm0, ymm1
    add rsi, 4
    add rdx, 4
    add rdi, 4
    dec ecx
    jnz LOCAL(absmax_one)
LOCAL(absmax_lanes):                        /* the largest of eight lanes, of four, of two */
    vextracti128 xmm1, ymm0, 1
    vpmaxud xmm0, xmm0, xmm1
    vpshufd xmm1, xmm0, 0x4e
    vpmaxud xmm0, xmm0, xmm1
    vpshufd xmm1, xmm0, 0xb1
    vpmaxud xmm0, xmm0, xmm1
    vmovd eax, xmm0
    vzeroupper
    ret
END(mahe_add_absmax_avx2)

/* What follows shares: rsi a; ymm0 scale, ymm1 inverse, in every lane. Each step does for its elements
 *      code = (int32_t)rintf(a * inverse); a = a - (float)code * scale;
 */

/* 32 elements from rsi on -> ymm2: their codes as bytes. The packs work in each half of a register by itself: the four
 * bytes of elements 4 j ... 4 j + 3 stand where they ought for j = 0, 2, 4, 6, 1, 3, 5, 7, one j for each dword. */
.macro encode_32
    vmulps ymm2, ymm1, ymmword ptr [rsi]
    vmulps ymm3, ymm1, ymmword ptr [rsi + 32]
    vmulps ymm4, ymm1, ymmword ptr [rsi + 64]
    vmulps ymm5, ymm1, ymmword ptr [rsi + 96]
    vcvtps2dq ymm2, ymm2
    vcvtps2dq ymm3, ymm3
    vcvtps2dq ymm4, ymm4
    vcvtps2dq ymm5, ymm5
    vcvtdq2ps ymm6, ymm2
    vcvtdq2ps ymm7, ymm3
    vcvtdq2ps ymm8, ymm4
    vcvtdq2ps ymm9, ymm5
    vmulps ymm6, ymm0, ymm6
    vmulps ymm7, ymm0, ymm7
    vmulps ymm8, ymm0, ymm8
    vmulps ymm9, ymm0, ymm9
    vmovups ymm10, ymmword ptr [rsi]
    vmovups ymm11, ymmword ptr [rsi + 32]
    vsubps ymm6, ymm10, ymm6
    vsubps ymm7, ymm11, ymm7
    vmovups ymm10, ymmword ptr [rsi + 64]
    vmovups ymm11, ymmword ptr [rsi + 96]
    vsubps ymm8, ymm10, ymm8
    vsubps ymm9, ymm11, ymm9
    vmovups ymmword ptr [rsi], ymm6
    vmovups ymmword ptr [rsi + 32], ymm7
    vmovups ymmword ptr [rsi + 64], ymm8
    vmovups ymmword ptr [rsi + 96], ymm9
    vpackssdw ymm2, ymm2, ymm3
    vpackssdw ymm4, ymm4, ymm5
    vpacksswb ymm2, ymm2, ymm4
    add rsi, 128
.endm

/* 8 elements from rsi on -> lower half of xmm2: their codes as bytes, in order. */
.macro encode_8
    vmovups ymm10, ymmword ptr [rsi]
    vmulps ymm2, ymm1, ymm10
    vcvtps2dq ymm2, ymm2
    vcvtdq2ps ymm6, ymm2
    vmulps ymm6, ymm0, ymm6
    vsubps ymm6, ymm10, ymm6
    vmovups ymmword ptr [rsi], ymm6
    vextracti128 xmm3, ymm2, 1
    vpackssdw xmm2, xmm2, xmm3
    vpacksswb xmm2, xmm2, xmm2
    add rsi, 32
.endm

/* 1 element at rsi -> \code, a 32-bit register. */
.macro encode_1 code
    vmovss xmm10, dword ptr [rsi]
    vmulss xmm2, xmm1, xmm10
    vcvtss2si \code, xmm2
    vcvtsi2ss xmm6, xmm0, \code
    vmulss xmm6, xmm0, xmm6
    vsubss xmm6, xmm10, xmm6
    vmovss dword ptr [rsi], xmm6
    add rsi, 4
.endm

/* void mahe_encode_q8_avx2(int8_t *codes, float *a, float scale, float inverse, size_t n)
 *      for (i = 0; i < n; i++) codes[i] = code of a[i];
 * rdi codes, rsi a, xmm0 scale, xmm1 inverse, rdx n. ymm13: the place of each dword in what encode_32 leaves. */
ENTRY(mahe_encode_q8_avx2)
    vbroadcastss ymm0, xmm0
    vbroadcastss ymm1, xmm1
    movabs r8, 0x0703060205010400
    vmovq xmm13, r8
    vpmovzxbd ymm13, xmm13
    mov rcx, rdx
    shr rcx, 5
    jz LOCAL(q8_eights)
    .p2align 5
LOCAL(q8_block):
    encode_32
    vpermd ymm2, ymm13, ymm2
    vmovdqu ymmword ptr [rdi], ymm2
    add rdi, 32
    dec rcx
    jnz LOCAL(q8_block)
LOCAL(q8_eights):
    mov ecx, edx
    shr ecx, 3
    and ecx, 3
    jz LOCAL(q8_ones)
LOCAL(q8_eight):
    encode_8
    vmovq qword ptr [rdi], xmm2
    add rdi, 8
    dec ecx
    jnz LOCAL(q8_eight)
LOCAL(q8_ones):
    and edx, 7
    jz LOCAL(q8_done)
LOCAL(q8_one):
    encode_1 eax
    mov byte ptr [rdi], al
    inc rdi
    dec edx
    jnz LOCAL(q8_one)
LOCAL(q8_done):
    vzeroupper
    ret
END(mahe_encode_q8_avx2)

/* void mahe_encode_q4_avx2(uint8_t *codes, float *a, float scale, float inverse, size_t n)
 *      for (i = 0; i < n; i += 2)
 *          codes[i / 2] = (code of a[i] + 8) | (code of a[i + 1], 0 where there is none, + 8) << 4;
 * Such a byte is low + 16 * high + 0x88. vpmaddubsw multiplies bytes, unsigned by signed, and adds each pair: with 1
 * and 16 it makes low + 16 * high, of magnitude 7 * 17 at most. That fits a byte; then 0x88 is added modulo 256.
 * rdi codes, rsi a, xmm0 scale, xmm1 inverse, rdx n. ymm13 as above, ymm14 pairs 1, 16, xmm15 bytes of 0x88. */
ENTRY(mahe_encode_q4_avx2)
    vbroadcastss ymm0, xmm0
    vbroadcastss ymm1, xmm1
    movabs r8, 0x0703060205010400
    vmovq xmm13, r8
    vpmovzxbd ymm13, xmm13
    mov eax, 0x10011001
    vmovd xmm14, eax
    vpbroadcastd ymm14, xmm14
    mov eax, 0x88888888
    vmovd xmm15, eax
    vpbroadcastd xmm15, xmm15
    mov rcx, rdx
    shr rcx, 5
    jz LOCAL(q4_eights)
    .p2align 5
LOCAL(q4_block):
    encode_32
    vpermd ymm2, ymm13, ymm2
    vpmaddubsw ymm2, ymm14, ymm2
    vextracti128 xmm3, ymm2, 1
    vpacksswb xmm2, xmm2, xmm3
    vpaddb xmm2, xmm2, xmm15
    vmovdqu xmmword ptr [rdi], xmm2
    add rdi, 16
    dec rcx
    jnz LOCAL(q4_block)
LOCAL(q4_eights):
    mov ecx, edx
    shr ecx, 3
    and ecx, 3
    jz LOCAL(q4_twos)
LOCAL(q4_eight):
    encode_8
    vpmaddubsw xmm2, xmm14, xmm2
    vpacksswb xmm2, xmm2, xmm2
    vpaddb xmm2, xmm2, xmm15
    vmovd dword ptr [rdi], xmm2
    add rdi, 4
    dec ecx
    jnz LOCAL(q4_eight)
LOCAL(q4_twos):
    and edx, 7
    jz LOCAL(q4_done)
LOCAL(q4_two):
    encode_1 eax
    xor r8d, r8d
    cmp edx, 1
    je LOCAL(q4_byte)                       /* the last one of an odd n */
    encode_1 r8d
LOCAL(q4_byte):
    shl r8d, 4
    lea eax, [rax + r8 + 0x88]
    mov byte ptr [rdi], al
    inc rdi
    sub edx, 2
    ja LOCAL(q4_two)                        /* unsigned: from 1 it goes below 0 and ends as well */
LOCAL(q4_done):
    vzeroupper
    ret
END(mahe_encode_q4_avx2)
#endif

#include "../note.h"
