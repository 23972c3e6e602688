/* Dequantisation of one block, AVX2. Replaces the decoding half of src/reference/blocks.c.
 *
 * A code is an integer of a few bits: its conversion to float32 is exact. The products round as in the C.
 */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"
#include "nibbles.h"

    .text

/* void mahe_decode_q8_avx2(float *x, const int8_t *codes, float scale, size_t n)
 *      for (i = 0; i < n; i++) x[i] = (float)codes[i] * scale;
 * rdi x, rsi codes, xmm0 scale, rdx n. 32, then 8, then 1 element at a time. */
ENTRY(mahe_decode_q8_avx2)
    vbroadcastss ymm0, xmm0
    mov rcx, rdx
    shr rcx, 5
    jz LOCAL(q8_eights)
    .p2align 5
LOCAL(q8_block):
    vpmovsxbd ymm2, qword ptr [rsi]
    vpmovsxbd ymm3, qword ptr [rsi + 8]
    vpmovsxbd ymm4, qword ptr [rsi + 16]
    vpmovsxbd ymm5, qword ptr [rsi + 24]
    vcvtdq2ps ymm2, ymm2
    vcvtdq2ps ymm3, ymm3
    vcvtdq2ps ymm4, ymm4
    vcvtdq2ps ymm5, ymm5
    vmulps ymm2, ymm0, ymm2
    vmulps ymm3, ymm0, ymm3
    vmulps ymm4, ymm0, ymm4
    vmulps ymm5, ymm0, ymm5
    vmovups ymmword ptr [rdi], ymm2
    vmovups ymmword ptr [rdi + 32], ymm3
    vmovups ymmword ptr [rdi + 64], ymm4
    vmovups ymmword ptr [rdi + 96], ymm5
    add rsi, 32
    add rdi, 128
    dec rcx
    jnz LOCAL(q8_block)
LOCAL(q8_eights):
    mov ecx, edx
    shr ecx, 3
    and ecx, 3
    jz LOCAL(q8_ones)
LOCAL(q8_eight):
    vpmovsxbd ymm2, qword ptr [rsi]
    vcvtdq2ps ymm2, ymm2
    vmulps ymm2, ymm0, ymm2
    vmovups ymmword ptr [rdi], ymm2
    add rsi, 8
    add rdi, 32
    dec ecx
    jnz LOCAL(q8_eight)
LOCAL(q8_ones):
    and edx, 7
    jz LOCAL(q8_done)
LOCAL(q8_one):
    movsx eax, byte ptr [rsi]
    vcvtsi2ss xmm2, xmm0, eax
    vmulss xmm2, xmm0, xmm2
    vmovss dword ptr [rdi], xmm2
    inc rsi
    add rdi, 4
    dec edx
    jnz LOCAL(q8_one)
LOCAL(q8_done):
    vzeroupper
    ret
END(mahe_decode_q8_avx2)

/* void mahe_decode_add_q8_avx2(float *dst, const int8_t *codes, float scale, float weight, size_t n)
 *      for (i = 0; i < n; i++) dst[i] = dst[i] + weight * ((float)codes[i] * scale);
 * rdi dst, rsi codes, xmm0 scale, xmm1 weight, rdx n. 32, then 8, then 1 element at a time. */
ENTRY(mahe_decode_add_q8_avx2)
    vbroadcastss ymm0, xmm0
    vbroadcastss ymm1, xmm1
    mov rcx, rdx
    shr rcx, 5
    jz LOCAL(add_q8_eights)
    .p2align 5
LOCAL(add_q8_block):
    vpmovsxbd ymm2, qword ptr [rsi]
    vpmovsxbd ymm3, qword ptr [rsi + 8]
    vpmovsxbd ymm4, qword ptr [rsi + 16]
    vpmovsxbd ymm5, qword ptr [rsi + 24]
    vcvtdq2ps ymm2, ymm2
    vcvtdq2ps ymm3, ymm3
    vcvtdq2ps ymm4, ymm4
    vcvtdq2ps ymm5, ymm5
    vmulps ymm2, ymm0, ymm2
    vmulps ymm3, ymm0, ymm3
    vmulps ymm4, ymm0, ymm4
    vmulps ymm5, ymm0, ymm5
    vmulps ymm2, ymm1, ymm2
    vmulps ymm3, ymm1, ymm3
    vmulps ymm4, ymm1, ymm4
    vmulps ymm5, ymm1, ymm5
    vaddps ymm2, ymm2, ymmword ptr [rdi]
    vaddps ymm3, ymm3, ymmword ptr [rdi + 32]
    vaddps ymm4, ymm4, ymmword ptr [rdi + 64]
    vaddps ymm5, ymm5, ymmword ptr [rdi + 96]
    vmovups ymmword ptr [rdi], ymm2
    vmovups ymmword ptr [rdi + 32], ymm3
    vmovups ymmword ptr [rdi + 64], ymm4
    vmovups ymmword ptr [rdi + 96], ymm5
    add rsi, 32
    add rdi, 128
    dec rcx
    jnz LOCAL(add_q8_block)
LOCAL(add_q8_eights):
    mov ecx, edx
    shr ecx, 3
    and ecx, 3
    jz LOCAL(add_q8_ones)
LOCAL(add_q8_eight):
    vpmovsxbd ymm2, qword ptr [rsi]
    vcvtdq2ps ymm2, ymm2
    vmulps ymm2, ymm0, ymm2
    vmulps ymm2, ymm1, ymm2
    vaddps ymm2, ymm2, ymmword ptr [rdi]
    vmovups ymmword ptr [rdi], ymm2
    add rsi, 8
    add rdi, 32
    dec ecx
    jnz LOCAL(add_q8_eight)
LOCAL(add_q8_ones):
    and edx, 7
    jz LOCAL(add_q8_done)
LOCAL(add_q8_one):
    movsx eax, byte ptr [rsi]
    vcvtsi2ss xmm2, xmm0, eax
    vmulss xmm2, xmm0, xmm2
    vmulss xmm2, xmm1, xmm2
    vaddss xmm2, xmm2, dword ptr [rdi]
    vmovss dword ptr [rdi], xmm2
    inc rsi
    add rdi, 4
    dec edx
    jnz LOCAL(add_q8_one)
LOCAL(add_q8_done):
    vzeroupper
    ret
END(mahe_decode_add_q8_avx2)

/* void mahe_decode_q4_avx2(float *x, const uint8_t *codes, float scale, size_t n)
 *      for (i = 0; i < n; i++) x[i] = (float)((codes[i / 2] >> i % 2 * 4 & 15) - 8) * scale;
 * rdi x, rsi codes, xmm0 scale, rdx n. 16, then 8, then 1 element at a time. */
ENTRY(mahe_decode_q4_avx2)
    vbroadcastss ymm0, xmm0
    nibble_constants
    mov rcx, rdx
    shr rcx, 4
    jz LOCAL(q4_eights)
    .p2align 5
LOCAL(q4_block):
    nibbles_8 ymm2, 0
    nibbles_8 ymm3, 4
    vmulps ymm2, ymm0, ymm2
    vmulps ymm3, ymm0, ymm3
    vmovups ymmword ptr [rdi], ymm2
    vmovups ymmword ptr [rdi + 32], ymm3
    add rsi, 8
    add rdi, 64
    dec rcx
    jnz LOCAL(q4_block)
LOCAL(q4_eights):
    test edx, 8
    jz LOCAL(q4_ones)
    nibbles_8 ymm2, 0
    vmulps ymm2, ymm0, ymm2
    vmovups ymmword ptr [rdi], ymm2
    add rsi, 4
    add rdi, 32
LOCAL(q4_ones):
    and edx, 7
    jz LOCAL(q4_done)
    last_nibbles LOCAL(q4_byte)
LOCAL(q4_one):
    nibble_1 xmm2
    vmulss xmm2, xmm0, xmm2
    vmovss dword ptr [rdi], xmm2
    add rdi, 4
    dec edx
    jnz LOCAL(q4_one)
LOCAL(q4_done):
    vzeroupper
    ret
END(mahe_decode_q4_avx2)

/* void mahe_decode_add_q4_avx2(float *dst, const uint8_t *codes, float scale, float weight, size_t n)
 *      for (i = 0; i < n; i++)
 *          dst[i] = dst[i] + weight * ((float)((codes[i / 2] >> i % 2 * 4 & 15) - 8) * scale);
 * rdi dst, rsi codes, xmm0 scale, xmm1 weight, rdx n. 16, then 8, then 1 element at a time. */
ENTRY(mahe_decode_add_q4_avx2)
    vbroadcastss ymm0, xmm0
    vbroadcastss ymm1, xmm1
    nibble_constants
    mov rcx, rdx
    shr rcx, 4
    jz LOCAL(add_q4_eights)
    .p2align 5
LOCAL(add_q4_block):
    nibbles_8 ymm2, 0
    nibbles_8 ymm3, 4
    vmulps ymm2, ymm0, ymm2
    vmulps ymm3, ymm0, ymm3
    vmulps ymm2, ymm1, ymm2
    vmulps ymm3, ymm1, ymm3
    vaddps ymm2, ymm2, ymmword ptr [rdi]
    vaddps ymm3, ymm3, ymmword ptr [rdi + 32]
    vmovups ymmword ptr [rdi], ymm2
    vmovups ymmword ptr [rdi + 32], ymm3
    add rsi, 8
    add rdi, 64
    dec rcx
    jnz LOCAL(add_q4_block)
LOCAL(add_q4_eights):
    test edx, 8
    jz LOCAL(add_q4_ones)
    nibbles_8 ymm2, 0
    vmulps ymm2, ymm0, ymm2
    vmulps ymm2, ymm1, ymm2
    vaddps ymm2, ymm2, ymmword ptr [rdi]
    vmovups ymmword ptr [rdi], ymm2
    add rsi, 4
    add rdi, 32
LOCAL(add_q4_ones):
    and edx, 7
    jz LOCAL(add_q4_done)
    last_nibbles LOCAL(add_q4_byte)
LOCAL(add_q4_one):
    nibble_1 xmm2
    vmulss xmm2, xmm0, xmm2
    vmulss xmm2, xmm1, xmm2
    vaddss xmm2, xmm2, dword ptr [rdi]
    vmovss dword ptr [rdi], xmm2
    add rdi, 4
    dec edx
    jnz LOCAL(add_q4_one)
LOCAL(add_q4_done):
    vzeroupper
    ret
END(mahe_decode_add_q4_avx2)
#endif

#include "../note.h"
