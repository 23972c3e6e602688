/* bfloat16, AVX2. Replaces src/reference/bf16.c. All on the bits: no rounding mode, no flush-to-zero bit has a say. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* void mahe_bf16_from_f32_avx2(uint16_t *dst, const float *src, size_t n)
 *      for (i = 0; i < n; i++) {
 *          bits = src[i] as uint32;
 *          nan = (bits & 0x7fffffff) > 0x7f800000;
 *          add = nan ? 0 : 0x7fff + (bits >> 16 & 1);
 *          dst[i] = (bits + add | (nan ? 0x400000 : 0)) >> 16;
 *      }
 * This is the C of the reference with its two branches in one: for a NaN nothing is added and the quiet bit, 0x40 in
 * the upper half, is set before the shift. 32 at a time as if nan were 0 for all; where one comparison says that some
 * are NaNs, these 32 go twice through the code for 16, which does everything. Then 16, then 1 at a time.
 * rdi dst, rsi src, rdx n, rcx blocks of 32 left (0 after the last), eax sixteens. ymm0 1, ymm1 0x7fff,
 * ymm2 0x7fffffff, ymm3 0x7f800000, ymm4 0x400000; ymm5-8 the bits; ymm9-12 what is added, and masks. */
ENTRY(mahe_bf16_from_f32_avx2)
    vpcmpeqd ymm2, ymm2, ymm2
    vpsrld ymm0, ymm2, 31
    vpsrld ymm1, ymm2, 17
    vpslld ymm4, ymm0, 22
    vpsrld ymm2, ymm2, 1
    vpsrld ymm3, ymm2, 23
    vpslld ymm3, ymm3, 23
    mov rcx, rdx
    shr rcx, 5
    jz LOCAL(to_bf16_rest)
    .p2align 5
LOCAL(to_bf16_block):
    prefetcht0 byte ptr [rdi + AHEAD]
    prefetcht0 byte ptr [rsi + AHEAD]
    prefetcht0 byte ptr [rsi + AHEAD + 64]
    vmovups ymm5, ymmword ptr [rsi]
    vmovups ymm6, ymmword ptr [rsi + 32]
    vmovups ymm7, ymmword ptr [rsi + 64]
    vmovups ymm8, ymmword ptr [rsi + 96]
    vcmpunordps ymm9, ymm5, ymm6
    vcmpunordps ymm10, ymm7, ymm8
    vorps ymm9, ymm9, ymm10
    vmovmskps eax, ymm9
    test eax, eax
    jnz LOCAL(to_bf16_careful)
    vpsrld ymm9, ymm5, 16
    vpsrld ymm10, ymm6, 16
    vpsrld ymm11, ymm7, 16
    vpsrld ymm12, ymm8, 16
    vpand ymm9, ymm9, ymm0
    vpand ymm10, ymm10, ymm0
    vpand ymm11, ymm11, ymm0
    vpand ymm12, ymm12, ymm0
    vpaddd ymm5, ymm5, ymm1
    vpaddd ymm6, ymm6, ymm1
    vpaddd ymm7, ymm7, ymm1
    vpaddd ymm8, ymm8, ymm1
    vpaddd ymm5, ymm5, ymm9
    vpaddd ymm6, ymm6, ymm10
    vpaddd ymm7, ymm7, ymm11
    vpaddd ymm8, ymm8, ymm12
    vpsrld ymm5, ymm5, 16
    vpsrld ymm6, ymm6, 16
    vpsrld ymm7, ymm7, 16
    vpsrld ymm8, ymm8, 16
    vpackusdw ymm5, ymm5, ymm6       /* quarters: first of ymm5, first of ymm6, second of ymm5, second of ymm6 */
    vpackusdw ymm7, ymm7, ymm8
    vpermq ymm5, ymm5, 0xd8          /* the two in the middle change places */
    vpermq ymm7, ymm7, 0xd8
    vmovdqu ymmword ptr [rdi], ymm5
    vmovdqu ymmword ptr [rdi + 32], ymm7
    add rsi, 128
    add rdi, 64
    dec rcx
    jnz LOCAL(to_bf16_block)
LOCAL(to_bf16_rest):
    test edx, 16
    jz LOCAL(to_bf16_ones)
    mov eax, 1
    jmp LOCAL(to_bf16_sixteen)
LOCAL(to_bf16_careful):
    mov eax, 2
LOCAL(to_bf16_sixteen):
    vmovdqu ymm5, ymmword ptr [rsi]
    vmovdqu ymm6, ymmword ptr [rsi + 32]
    vpsrld ymm7, ymm5, 16
    vpsrld ymm8, ymm6, 16
    vpand ymm7, ymm7, ymm0
    vpand ymm8, ymm8, ymm0
    vpaddd ymm7, ymm7, ymm1
    vpaddd ymm8, ymm8, ymm1
    vpand ymm9, ymm5, ymm2
    vpand ymm10, ymm6, ymm2
    vpcmpgtd ymm9, ymm9, ymm3        /* signed, but both are below 2^31 */
    vpcmpgtd ymm10, ymm10, ymm3
    vpandn ymm7, ymm9, ymm7
    vpandn ymm8, ymm10, ymm8
    vpand ymm9, ymm9, ymm4
    vpand ymm10, ymm10, ymm4
    vpaddd ymm5, ymm5, ymm7
    vpaddd ymm6, ymm6, ymm8
    vpor ymm5, ymm5, ymm9
    vpor ymm6, ymm6, ymm10
    vpsrld ymm5, ymm5, 16
    vpsrld ymm6, ymm6, 16
    vpackusdw ymm5, ymm5, ymm6
    vpermq ymm5, ymm5, 0xd8
    vmovdqu ymmword ptr [rdi], ymm5
    add rsi, 64
    add rdi, 32
    dec eax
    jnz LOCAL(to_bf16_sixteen)
    test rcx, rcx
    jz LOCAL(to_bf16_ones)
    dec rcx
    jnz LOCAL(to_bf16_block)
    jmp LOCAL(to_bf16_rest)
LOCAL(to_bf16_ones):
    and edx, 15
    jz LOCAL(to_bf16_done)
LOCAL(to_bf16_one):
    mov eax, dword ptr [rsi]
    lea ecx, [rax + rax]             /* the magnitude, doubled */
    cmp ecx, 0xff000000
    ja LOCAL(to_bf16_nan)
    mov ecx, eax
    shr ecx, 16
    and ecx, 1
    lea eax, [rax + rcx + 0x7fff]
    shr eax, 16
    jmp LOCAL(to_bf16_store)
LOCAL(to_bf16_nan):
    shr eax, 16
    or eax, 0x40
LOCAL(to_bf16_store):
    mov word ptr [rdi], ax
    add rsi, 4
    add rdi, 2
    dec edx
    jnz LOCAL(to_bf16_one)
LOCAL(to_bf16_done):
    vzeroupper
    ret
END(mahe_bf16_from_f32_avx2)

/* void mahe_f32_from_bf16_avx2(float *dst, const uint16_t *src, size_t n)
 *      for (i = 0; i < n; i++) dst[i] = (uint32_t)src[i] << 16 as float;
 * rdi dst, rsi src, rdx n. */
ENTRY(mahe_f32_from_bf16_avx2)
    mov rcx, rdx
    shr rcx, 4
    jz LOCAL(from_bf16_ones)
    .p2align 5
LOCAL(from_bf16_block):
    prefetcht0 byte ptr [rdi + AHEAD]
    vpmovzxwd ymm0, xmmword ptr [rsi]
    vpmovzxwd ymm1, xmmword ptr [rsi + 16]
    vpslld ymm0, ymm0, 16
    vpslld ymm1, ymm1, 16
    vmovdqu ymmword ptr [rdi], ymm0
    vmovdqu ymmword ptr [rdi + 32], ymm1
    add rsi, 32
    add rdi, 64
    dec rcx
    jnz LOCAL(from_bf16_block)
LOCAL(from_bf16_ones):
    and edx, 15
    jz LOCAL(from_bf16_done)
LOCAL(from_bf16_one):
    movzx eax, word ptr [rsi]
    shl eax, 16
    mov dword ptr [rdi], eax
    add rsi, 2
    add rdi, 4
    dec edx
    jnz LOCAL(from_bf16_one)
LOCAL(from_bf16_done):
    vzeroupper
    ret
END(mahe_f32_from_bf16_avx2)
#endif

#include "../note.h"
