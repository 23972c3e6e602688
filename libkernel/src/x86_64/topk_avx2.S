/* The two passes of the radix select, AVX2. Replaces src/reference/topk.c, except the first level of the count, where
 * every entry counts: that is topk_entry.c.
 *
 * Both look for the few entries that matter among many that do not: 32 at a time make a mask of 32 bits, bit i for
 * entry i; where it is not 0, its bits are walked from the lowest to the highest.
 *
 * A mask is made of four comparisons, each of which gives 0 or -1 for 8 entries of 4 bytes. Packed twice with signed
 * saturation, 0 and -1 stay what they are. But vpackssdw and vpacksswb work on each half of a register by itself: with
 * a, b, c, d for the four comparisons, and 0 or 4 for their entries 0-3 or 4-7, the eight parts of 4 bytes come out as
 * a0 b0 c0 d0 a4 b4 c4 d4. vpermd puts them right: a0 a4 b0 b4 c0 c4 d0 d4 are the parts 0 4 1 5 2 6 3 7.
 *
 * tzcnt never sees 0 here, so that a CPU without BMI1, which takes it for bsf, comes to the same result. */
#if defined(__x86_64__) && !defined(MAHE_NO_ASM)
#include "asm.h"

    .text

/* The order of the parts, a byte each. */
#define ORDER 0x0703060205010400

/* void mahe_topk_match_avx2(uint32_t *counts, const float *x, const struct mahe_topk_level *level, size_t n)
 *      keep = 0x7fffffff >> level->prefix_shift << level->prefix_shift;
 *      prefix = level->prefix << level->prefix_shift;
 *      mask = level->mask << level->shift & 0x7fffffff;
 *      for (i = 0; i < n; i++) {
 *          bits = x[i] as uint32;
 *          if ((bits & keep) == prefix) counts[(bits & mask) >> level->shift]++;
 *      }
 * The same as the C, as long as no bit of the prefix is lost in the shift to the left.
 * rdi counts, rsi x, rdx entries left, cl shift, r10d mask. ymm0 keep, ymm1 prefix, ymm2 order; ymm3-6 comparisons.
 * In the walk eax is the mask of 32; r11 the place, then bits & mask, then work. r9d is bits & mask of the last match,
 * r8d how many in a row had it and are not in counts yet: often all that match are equal (zeros), and incrementing one
 * place in memory again and again waits each time for the time before. In the tail r8d keep, r9d prefix. */
ENTRY(mahe_topk_match_avx2)
    mov r8, rdx
    mov rdx, rcx
    movabs rax, ORDER
    vmovq xmm2, rax
    vpmovzxbd ymm2, xmm2
    mov ecx, dword ptr [r8]
    mov r9d, dword ptr [r8 + 4]
    shl r9d, cl
    vmovd xmm1, r9d
    vpbroadcastd ymm1, xmm1
    mov eax, 0x7fffffff
    shr eax, cl
    shl eax, cl
    vmovd xmm0, eax
    vpbroadcastd ymm0, xmm0
    mov ecx, dword ptr [r8 + 8]
    mov r10d, dword ptr [r8 + 12]
    shl r10d, cl
    and r10d, 0x7fffffff
    xor r8d, r8d
    xor r9d, r9d
    sub rdx, 32
    jb LOCAL(match_tail)
    .p2align 5
LOCAL(match_block):
    prefetcht0 byte ptr [rsi + AHEAD_ONE]
    prefetcht0 byte ptr [rsi + AHEAD_ONE + 64]
    vpand ymm3, ymm0, ymmword ptr [rsi]
    vpand ymm4, ymm0, ymmword ptr [rsi + 32]
    vpand ymm5, ymm0, ymmword ptr [rsi + 64]
    vpand ymm6, ymm0, ymmword ptr [rsi + 96]
    vpcmpeqd ymm3, ymm3, ymm1
    vpcmpeqd ymm4, ymm4, ymm1
    vpcmpeqd ymm5, ymm5, ymm1
    vpcmpeqd ymm6, ymm6, ymm1
    vpackssdw ymm3, ymm3, ymm4
    vpackssdw ymm5, ymm5, ymm6
    vpacksswb ymm3, ymm3, ymm5
    vpermd ymm3, ymm2, ymm3
    vpmovmskb eax, ymm3
    test eax, eax
    jz LOCAL(match_next)
LOCAL(match_walk):
    tzcnt r11d, eax
    mov r11d, dword ptr [rsi + 4 * r11]
    and r11d, r10d
    cmp r11d, r9d
    jne LOCAL(match_change)
    inc r8d
LOCAL(match_counted):
    lea r11d, [rax - 1]
    and eax, r11d                    /* the lowest bit goes */
    jnz LOCAL(match_walk)
LOCAL(match_next):
    add rsi, 128
    sub rdx, 32
    jae LOCAL(match_block)
LOCAL(match_tail):
    shr r9d, cl
    add dword ptr [rdi + 4 * r9], r8d
    and edx, 31                      /* it is 32 too low */
    jz LOCAL(match_done)
    vmovd r8d, xmm0
    vmovd r9d, xmm1
    jmp LOCAL(match_one)
LOCAL(match_change):
    shr r9d, cl
    add dword ptr [rdi + 4 * r9], r8d
    mov r9d, r11d
    mov r8d, 1
    jmp LOCAL(match_counted)
LOCAL(match_one):
    mov r11d, dword ptr [rsi]
    mov eax, r11d
    and eax, r8d
    cmp eax, r9d
    jne LOCAL(match_other)
    and r11d, r10d
    shr r11d, cl
    inc dword ptr [rdi + 4 * r11]
LOCAL(match_other):
    add rsi, 4
    dec edx
    jnz LOCAL(match_one)
LOCAL(match_done):
    vzeroupper
    ret
END(mahe_topk_match_avx2)

/* void mahe_topk_take_avx2(uint32_t *indices, float *values, const float *x, size_t n, uint32_t threshold,
 *                          size_t ties)
 *      limit = ties == 0 ? threshold : threshold - 1;
 *      for (i = 0; i < n; i++) {
 *          magnitude = x[i] as uint32 & 0x7fffffff;
 *          if (magnitude <= limit) continue;                   32 at a time, by signed comparison: limit may be -1
 *          if (magnitude < threshold) continue;                only in the tail
 *          if (magnitude == threshold) {
 *              if (ties == 0) continue;                        only in the 32 after the last tie
 *              if (--ties == 0) limit = threshold;
 *          }
 *          *indices++ = i; *values++ = x[i];
 *      }
 * The tail is walked as a mask of all ones: the walk looks at each entry anyway.
 * rdi indices, rsi values, rdx x + r10, r10 i of the first of these 32, r8d threshold (doubled, to compare without the
 * sign), r9 ties, eax mask of 32, r11 place, ecx work. ymm0 0x7fffffff, ymm1 limit, ymm2 order, xmm3 n; ymm4-7. */
ENTRY(mahe_topk_take_avx2)
    vmovq xmm3, rcx
    movabs rax, ORDER
    vmovq xmm2, rax
    vpmovzxbd ymm2, xmm2
    vpcmpeqd ymm0, ymm0, ymm0
    vpsrld ymm0, ymm0, 1
    mov eax, r8d
    cmp r9, 1                        /* the carry says that there are no ties */
    adc eax, -1
    vmovd xmm1, eax
    vpbroadcastd ymm1, xmm1
    add r8d, r8d
    xor r10d, r10d
    .p2align 5
LOCAL(take_block):
    vmovq rax, xmm3
    lea rcx, [r10 + 32]
    cmp rcx, rax
    ja LOCAL(take_tail)
    prefetcht0 byte ptr [rdx + AHEAD_ONE]
    prefetcht0 byte ptr [rdx + AHEAD_ONE + 64]
    vpand ymm4, ymm0, ymmword ptr [rdx]
    vpand ymm5, ymm0, ymmword ptr [rdx + 32]
    vpand ymm6, ymm0, ymmword ptr [rdx + 64]
    vpand ymm7, ymm0, ymmword ptr [rdx + 96]
    vpcmpgtd ymm4, ymm4, ymm1
    vpcmpgtd ymm5, ymm5, ymm1
    vpcmpgtd ymm6, ymm6, ymm1
    vpcmpgtd ymm7, ymm7, ymm1
    vpackssdw ymm4, ymm4, ymm5
    vpackssdw ymm6, ymm6, ymm7
    vpacksswb ymm4, ymm4, ymm6
    vpermd ymm4, ymm2, ymm4
    vpmovmskb eax, ymm4
    test eax, eax
    jz LOCAL(take_next)
LOCAL(take_walk):
    tzcnt r11d, eax
    mov ecx, dword ptr [rdx + 4 * r11]
    add ecx, ecx
    cmp ecx, r8d
    jb LOCAL(take_skip)
    je LOCAL(take_tie)
LOCAL(take_one):
    mov ecx, dword ptr [rdx + 4 * r11]
    add r11d, r10d
    mov dword ptr [rdi], r11d
    mov dword ptr [rsi], ecx
    add rdi, 4
    add rsi, 4
LOCAL(take_skip):
    lea ecx, [rax - 1]
    and eax, ecx                     /* the lowest bit goes */
    jnz LOCAL(take_walk)
LOCAL(take_next):
    add r10, 32
    add rdx, 128
    jmp LOCAL(take_block)
LOCAL(take_tie):
    test r9, r9
    jz LOCAL(take_skip)
    dec r9
    jnz LOCAL(take_one)
    vpcmpeqd ymm4, ymm4, ymm4
    vpsubd ymm1, ymm1, ymm4          /* the last one taken: limit + 1 */
    jmp LOCAL(take_one)
LOCAL(take_tail):
    sub rax, r10                     /* 0-31 are left; less than 0 after their walk */
    jle LOCAL(take_done)
    mov ecx, eax
    mov eax, 1
    shl eax, cl
    dec eax
    jmp LOCAL(take_walk)
LOCAL(take_done):
    vzeroupper
    ret
END(mahe_topk_take_avx2)
#endif

#include "../note.h"
