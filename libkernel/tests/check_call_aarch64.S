/* check_call_aarch64.S: the trampoline. Calls a kernel with known values in every register and reports what changed.
 *
 *      void check_call(kernel fn, const struct call *call, struct call_report *report)
 * x0 fn, x1 call, x2 report. x18 belongs to the system and is left alone.
 */
#if defined(__aarch64__)
#include "../src/aarch64/asm.h"
#include "check_call.h"

    .text

ENTRY(check_call)
    stp x29, x30, [sp, #-176]!
    stp x19, x20, [sp, #16]
    stp x21, x22, [sp, #32]
    stp x23, x24, [sp, #48]
    stp x25, x26, [sp, #64]
    stp x27, x28, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    str x2, [sp, #160]
    sub sp, sp, #16
    mrs x9, fpcr
    str x9, [x2, #REPORT_CONTROL]
    mov x16, x0
    mov x15, x1
    mov x14, x2

    ldr q31, [x14, #REPORT_FILL]            // the vectors: junk, but for d0, d1 and the lower halves of v8-v15
    mov v0.16b, v31.16b
    mov v1.16b, v31.16b
    mov v2.16b, v31.16b
    mov v3.16b, v31.16b
    mov v4.16b, v31.16b
    mov v5.16b, v31.16b
    mov v6.16b, v31.16b
    mov v7.16b, v31.16b
    mov v8.16b, v31.16b
    mov v9.16b, v31.16b
    mov v10.16b, v31.16b
    mov v11.16b, v31.16b
    mov v12.16b, v31.16b
    mov v13.16b, v31.16b
    mov v14.16b, v31.16b
    mov v15.16b, v31.16b
    mov v16.16b, v31.16b
    mov v17.16b, v31.16b
    mov v18.16b, v31.16b
    mov v19.16b, v31.16b
    mov v20.16b, v31.16b
    mov v21.16b, v31.16b
    mov v22.16b, v31.16b
    mov v23.16b, v31.16b
    mov v24.16b, v31.16b
    mov v25.16b, v31.16b
    mov v26.16b, v31.16b
    mov v27.16b, v31.16b
    mov v28.16b, v31.16b
    mov v29.16b, v31.16b
    mov v30.16b, v31.16b
    ldp x9, x10, [x15, #CALL_REAL]
    mov v0.d[0], x9
    mov v1.d[0], x10
    add x11, x14, #REPORT_BEFORE
    ldp x9, x10, [x11, #88]
    mov v8.d[0], x9
    mov v9.d[0], x10
    ldp x9, x10, [x11, #104]
    mov v10.d[0], x9
    mov v11.d[0], x10
    ldp x9, x10, [x11, #120]
    mov v12.d[0], x9
    mov v13.d[0], x10
    ldp x9, x10, [x11, #136]
    mov v14.d[0], x9
    mov v15.d[0], x10

    ldp x9, x10, [x11, #152]                // two canaries where the arguments beyond x7 would be
    stp x9, x10, [sp]
    ldp x19, x20, [x11]
    ldp x21, x22, [x11, #16]
    ldp x23, x24, [x11, #32]
    ldp x25, x26, [x11, #48]
    ldp x27, x28, [x11, #64]
    ldr x29, [x11, #80]
    ldp x0, x1, [x15, #CALL_WORD]
    ldp x2, x3, [x15, #CALL_WORD + 16]
    ldp x4, x5, [x15, #CALL_WORD + 32]
    ldr x17, [x14, #REPORT_FILL]
    cmp x17, #0                             // the flags may be anything, too
    mov x6, #-1                             // volatile registers hold junk
    mov x7, #-2
    mov x8, #-3
    mov x9, #-4
    mov x10, #-5
    mov x11, #-6
    mov x12, #-7
    mov x13, #-8
    mov x14, #-9
    mov x15, #-10
    mov x17, #-11
    blr x16

    ldr x9, [sp, #176]
    str x0, [x9, #REPORT_RESULT]
    mrs x10, fpcr
    str x10, [x9, #REPORT_CONTROL + 8]
    add x9, x9, #REPORT_AFTER
    stp x19, x20, [x9]
    stp x21, x22, [x9, #16]
    stp x23, x24, [x9, #32]
    stp x25, x26, [x9, #48]
    stp x27, x28, [x9, #64]
    str x29, [x9, #80]
    stp d8, d9, [x9, #88]
    stp d10, d11, [x9, #104]
    stp d12, d13, [x9, #120]
    stp d14, d15, [x9, #136]
    ldp x10, x11, [sp]
    stp x10, x11, [x9, #152]
    add sp, sp, #16
    ldp d14, d15, [sp, #144]
    ldp d12, d13, [sp, #128]
    ldp d10, d11, [sp, #112]
    ldp d8, d9, [sp, #96]
    ldp x27, x28, [sp, #80]
    ldp x25, x26, [sp, #64]
    ldp x23, x24, [sp, #48]
    ldp x21, x22, [sp, #32]
    ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp], #176
    ret
END(check_call)
#endif

#include "../src/note.h"
