/* check_call_x86_64.S: the trampoline. Calls fn(a, b, c) with known values in every register and reports what changed.
 *
 *      void check_call(void *fn, void *a, const void *b, uint64_t c, struct call_report *report, T scalar)
 * rdi fn, rsi a, rdx b, rcx c, r8 report, xmm0 scalar (its low 64 bits are handed on as they are).
 */
#if defined(__x86_64__)
#include "../src/x86_64/asm.h"
#include "check_call.h"

#define MAGIC(i) (0x6d616865 + i * 0x01010101)
#define CANARY 0x5ca1ab1e

    .text

    .globl SYMBOL(check_call_float)
    .globl SYMBOL(check_call_double)
    TYPE(check_call_float)
    TYPE(check_call_double)
    .p2align 5
SYMBOL(check_call_float):
SYMBOL(check_call_double):
    endbr64
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    push r8                                 // [rsp + 32] after the next pushes
    sub rsp, 32
    mov eax, CANARY                         // two canaries above the return address, at [rsp] and [rsp + 8]
    mov qword ptr [rsp], rax
    mov qword ptr [rsp + 8], rax
    stmxcsr dword ptr [r8 + REPORT_MXCSR]
    mov rax, rdi
    mov rdi, rsi
    mov rsi, rdx
    mov rdx, rcx
    cmp qword ptr [r8 + REPORT_WIDE], 0
    je LOCAL(call_now)
    cmp qword ptr [r8 + REPORT_XINUSE], 0
    je LOCAL(call_fill)
    mov r9, rax                             // some CPUs and emulators never clear the bit: then it says nothing
    mov r10, rdx
    vzeroupper
    mov ecx, 1
    xgetbv
    not eax
    shr eax, 2
    and eax, 1
    mov qword ptr [r8 + REPORT_XINUSE], rax
    mov rax, r9
    mov rdx, r10
LOCAL(call_fill):
    vmovdqu ymm15, ymmword ptr [r8 + REPORT_FILL]
    vunpcklpd xmm0, xmm0, xmm15
    vinsertf128 ymm0, ymm0, xmm15, 1
    vmovdqa ymm1, ymm15
    vmovdqa ymm2, ymm15
    vmovdqa ymm3, ymm15
    vmovdqa ymm4, ymm15
    vmovdqa ymm5, ymm15
    vmovdqa ymm6, ymm15
    vmovdqa ymm7, ymm15
    vmovdqa ymm8, ymm15
    vmovdqa ymm9, ymm15
    vmovdqa ymm10, ymm15
    vmovdqa ymm11, ymm15
    vmovdqa ymm12, ymm15
    vmovdqa ymm13, ymm15
    vmovdqa ymm14, ymm15
LOCAL(call_now):
    mov ebx, MAGIC(0)
    mov ebp, MAGIC(1)
    mov r12d, MAGIC(2)
    mov r13d, MAGIC(3)
    mov r14d, MAGIC(4)
    mov r15d, MAGIC(5)
    mov rcx, -1                             // volatile registers hold junk
    mov r8, -2
    mov r9, -3
    mov r10, -4
    mov r11, -5
    call rax
    mov r8, qword ptr [rsp + 32]
    pushfq
    pop qword ptr [r8 + REPORT_FLAGS]
    cld
    stmxcsr dword ptr [r8 + REPORT_MXCSR + 4]
    xor r9d, r9d
#define WATCH(bit, value, expected) \
    mov eax, expected; xor rax, value; neg rax; sbb eax, eax; and eax, 1 << bit; or r9d, eax
    WATCH(0, rbx, MAGIC(0))
    WATCH(1, rbp, MAGIC(1))
    WATCH(2, r12, MAGIC(2))
    WATCH(3, r13, MAGIC(3))
    WATCH(4, r14, MAGIC(4))
    WATCH(5, r15, MAGIC(5))
    WATCH(6, qword ptr [rsp], CANARY)
    WATCH(7, qword ptr [rsp + 8], CANARY)
    mov qword ptr [r8 + REPORT_DAMAGE], r9
    cmp qword ptr [r8 + REPORT_XINUSE], 0
    je LOCAL(call_clean)
    mov ecx, 1
    xgetbv
    mov dword ptr [r8 + REPORT_XINUSE], eax
LOCAL(call_clean):
    cmp qword ptr [r8 + REPORT_WIDE], 0
    je LOCAL(call_back)
    vzeroupper
LOCAL(call_back):
    add rsp, 40
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
    SIZE(check_call_float)
    SIZE(check_call_double)
#endif

#include "../src/note.h"
