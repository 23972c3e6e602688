/* check_call_x86_64.S: the trampoline. Calls a kernel with known values in every register and reports what changed.
 *
 *      void check_call(kernel fn, const struct call *call, struct call_report *report)
 * rdi fn, rsi call, rdx report. rbp = call until just before it is made; then [rsp + 16] remembers the report.
 */
#if defined(__x86_64__)
#include "../src/x86_64/asm.h"
#include "check_call.h"

    .text

ENTRY(check_call)
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    sub rsp, 40                             // 16-byte aligned again; 0 and 8: canaries, 16: report, 24: fn
    mov qword ptr [rsp + 16], rdx
    mov qword ptr [rsp + 24], rdi
    mov rbp, rsi
    mov r8, rdx
    mov rax, qword ptr [r8 + REPORT_BEFORE + 48]
    mov qword ptr [rsp], rax
    mov rax, qword ptr [r8 + REPORT_BEFORE + 56]
    mov qword ptr [rsp + 8], rax
    stmxcsr dword ptr [r8 + REPORT_CONTROL]
    cmp qword ptr [r8 + REPORT_WIDE], 0
    je LOCAL(call_narrow)

    cmp qword ptr [r8 + REPORT_XINUSE], 0
    je LOCAL(call_wide)
    vzeroupper                              // some CPUs and emulators never clear the bit: then it says nothing
    mov ecx, 1
    xgetbv
    not eax
    shr eax, 2
    and eax, 1
    mov qword ptr [r8 + REPORT_XINUSE], rax
LOCAL(call_wide):
    vmovdqu ymm15, ymmword ptr [r8 + REPORT_FILL]
    vmovdqa ymm0, ymm15
    vmovdqa ymm1, ymm15
    vmovlps xmm0, xmm0, qword ptr [rbp + CALL_REAL]
    vmovlps xmm1, xmm1, qword ptr [rbp + CALL_REAL + 8]
    vinsertf128 ymm0, ymm0, xmm15, 1        // the instruction before cleared the upper half
    vinsertf128 ymm1, ymm1, xmm15, 1
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
    jmp LOCAL(call_integers)
LOCAL(call_narrow):                         // as above for a CPU without AVX
    movups xmm15, xmmword ptr [r8 + REPORT_FILL]
    movaps xmm0, xmm15
    movaps xmm1, xmm15
    movlps xmm0, qword ptr [rbp + CALL_REAL]
    movlps xmm1, qword ptr [rbp + CALL_REAL + 8]
    movaps xmm2, xmm15
    movaps xmm3, xmm15
    movaps xmm4, xmm15
    movaps xmm5, xmm15
    movaps xmm6, xmm15
    movaps xmm7, xmm15
    movaps xmm8, xmm15
    movaps xmm9, xmm15
    movaps xmm10, xmm15
    movaps xmm11, xmm15
    movaps xmm12, xmm15
    movaps xmm13, xmm15
    movaps xmm14, xmm15

LOCAL(call_integers):
    mov rbx, qword ptr [r8 + REPORT_BEFORE]
    mov r12, qword ptr [r8 + REPORT_BEFORE + 16]
    mov r13, qword ptr [r8 + REPORT_BEFORE + 24]
    mov r14, qword ptr [r8 + REPORT_BEFORE + 32]
    mov r15, qword ptr [r8 + REPORT_BEFORE + 40]
    mov r10, qword ptr [r8 + REPORT_BEFORE + 8]
    mov rdi, qword ptr [rbp + CALL_WORD]
    mov rsi, qword ptr [rbp + CALL_WORD + 8]
    mov rdx, qword ptr [rbp + CALL_WORD + 16]
    mov rcx, qword ptr [rbp + CALL_WORD + 24]
    mov r8, qword ptr [rbp + CALL_WORD + 32]
    mov r9, qword ptr [rbp + CALL_WORD + 40]
    mov rbp, r10
    mov r11, qword ptr [rsp + 16]
    bt dword ptr [r11 + REPORT_FILL], 31    // the carry may be anything, too
    mov r10, -4                             // volatile registers hold junk
    mov r11, -5
    mov rax, -6
    call qword ptr [rsp + 24]

    mov r8, qword ptr [rsp + 16]
    pushfq
    pop qword ptr [r8 + REPORT_FLAGS]
    cld
    stmxcsr dword ptr [r8 + REPORT_CONTROL + 8]
    mov qword ptr [r8 + REPORT_RESULT], rax
    mov qword ptr [r8 + REPORT_AFTER], rbx
    mov qword ptr [r8 + REPORT_AFTER + 8], rbp
    mov qword ptr [r8 + REPORT_AFTER + 16], r12
    mov qword ptr [r8 + REPORT_AFTER + 24], r13
    mov qword ptr [r8 + REPORT_AFTER + 32], r14
    mov qword ptr [r8 + REPORT_AFTER + 40], r15
    mov rax, qword ptr [rsp]
    mov qword ptr [r8 + REPORT_AFTER + 48], rax
    mov rax, qword ptr [rsp + 8]
    mov qword ptr [r8 + REPORT_AFTER + 56], rax
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
END(check_call)
#endif

#include "../src/note.h"
