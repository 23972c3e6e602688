/* check_call.h: offsets in struct call and struct call_report, shared by check_call.c and the trampolines. */
#ifndef MAHE_CHECK_CALL_H
#define MAHE_CHECK_CALL_H

#define CALL_WORD 0 /* struct call: 6 integers */
#define CALL_REAL 48 /* 2 reals */

#if defined(__x86_64__)
#define REPORT_KEPT 8 /* rbx, rbp, r12-r15, two words of the stack above the return address */
#define REPORT_FILLS 4
#define REPORT_FILL 0     /* in: what the vector registers hold before the call, 32 bytes */
#define REPORT_BEFORE 32  /* in: what must be kept, 8 words */
#define REPORT_AFTER 96   /* out: the same after the call */
#define REPORT_CONTROL 160 /* out: MXCSR before and after the call */
#define REPORT_RESULT 176 /* out: rax */
#define REPORT_FLAGS 184  /* out: RFLAGS after the call */
#define REPORT_WIDE 192   /* in: 1 = fill ymm0-15, 0 = xmm0-15 */
#define REPORT_XINUSE 200 /* in: 1 = XGETBV(1) works here; out: bit 2 set = upper halves in use on return */
#define REPORT_BYTES 208
#elif defined(__aarch64__)
#define REPORT_KEPT 21 /* x19-x29, d8-d15, two words of the stack above the call */
#define REPORT_FILLS 2
#define REPORT_FILL 0     /* in: what the vector registers hold before the call, 16 bytes */
#define REPORT_BEFORE 16  /* in: what must be kept, 21 words */
#define REPORT_AFTER 184  /* out: the same after the call */
#define REPORT_CONTROL 352 /* out: FPCR before and after the call */
#define REPORT_RESULT 368 /* out: x0 */
#define REPORT_BYTES 376
#endif

#endif
